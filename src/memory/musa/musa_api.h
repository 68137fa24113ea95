#pragma once

#include "memory/cuda_shaped_runtime.h"

// What we use of Moore Threads' MUSA beyond what it has in common with CUDA's runtime API. No
// package of its headers can be had, so all of this is cited and none of it is checked:
// - names and arguments: "MUSA Runtime API", MUSA SDK 3.1 and 4.x, as third parties declare them
//   (TileLang's stub of libmusart.so, torch_musa 2.5);
// - error numbers, 712 and 600 among them: driver_types.h of the MUSA SDK;
// - musaMemoryType and the flags: the values of CUDA 11, which the SDK says that it keeps;
// - muMemGetAddressRange(): musa.h, "MUSA Driver API" 4.x; also as _v2, as in CUDA.
namespace hmc::musa {

enum : int {
  kIpcLazyPeerAccess = 1,  // musaIpcMemLazyEnablePeerAccess
  kMemoryTypeDevice = 2,   // musaMemoryTypeDevice
};

// Of libmusa.so, the driver's library.
using MemGetAddressRange = int(unsigned long long* base, size_t* size, unsigned long long ptr);

}  // namespace hmc::musa
