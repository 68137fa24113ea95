#pragma once

#include "memory/cuda_shaped_runtime.h"

// What we use of Moore Threads' MUSA beyond what it has in common with CUDA's runtime API. Its
// headers come with the MUSA SDK only, and no package index has them, so no test checks this.
//
// Cited from public repositories, compared by eye:
// - names and arguments: as TileLang's stub of libmusart.so.4 and .5 exports them, and torch_musa
//   calls them;
// - error numbers (0, 1, 2, 100, 600, 712, 801): a copy of the SDK's enumeration in a program that
//   shows GPUs;
// - 64 bytes of an IPC handle, and 1 for a portable registration and for lazy peer access:
// constants
//   of a Python binding;
// - muMemGetAddressRange(): as torch_musa and TensorFlow's MUSA plugin call it. Its name may end in
//   _v2, as in CUDA.
// Not cited, assumed to be CUDA's: kinds of memory, directions of copies, flags of streams and
// events, and how a pointer's attributes lie in memory.
namespace hmc::musa {

enum : int {
  kIpcLazyPeerAccess = 1,  // musaIpcMemLazyEnablePeerAccess
  kMemoryTypeDevice = 2,   // musaMemoryTypeDevice
};

// Of libmusa.so, the driver's library.
using MemGetAddressRange = int(unsigned long long* base, size_t* size, unsigned long long ptr);

}  // namespace hmc::musa
