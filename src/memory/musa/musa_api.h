#pragma once

#include "memory/cuda_shaped_runtime.h"

// What we use of Moore Threads' MUSA beyond what it has in common with CUDA's runtime API. No
// package of its headers can be had, so none of this is checked by a test:
// - names and arguments: as TileLang's stub of libmusart.so.4 and .5 exports them, and torch_musa
//   calls them;
// - error numbers, 600 and 712 among them: driver_types.h of the MUSA SDK;
// - kinds of memory and copies, flags, and the size of a handle: assumed to be CUDA's;
// - muMemGetAddressRange(): as torch_musa and TensorFlow's MUSA plugin call it. Its name may end in
//   _v2, as in CUDA.
namespace hmc::musa {

enum : int {
  kIpcLazyPeerAccess = 1,  // musaIpcMemLazyEnablePeerAccess
  kMemoryTypeDevice = 2,   // musaMemoryTypeDevice
};

// Of libmusa.so, the driver's library.
using MemGetAddressRange = int(unsigned long long* base, size_t* size, unsigned long long ptr);

}  // namespace hmc::musa
