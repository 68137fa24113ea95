#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

// What tests set and read of tests/fakes/fake_libibverbs.cc, once it is loaded as libibverbs.so.1.
namespace hmc::test {

// How it registers memory, and what it was asked.
struct FakeRegistering {
  int hostError = 0;          // errno of every ibv_reg_mr() but that of a NIC's own byte
  bool hostReadOnly = false;  // ibv_reg_mr() with local write fails with EFAULT
  bool peerMemory = false;    // ibv_reg_mr() takes addresses that the processor cannot read
  int dmabufError = 0;
  int registered = 0;
  int deregistered = 0;
  int lastAccess = 0;
  struct Dmabuf {
    int fd = -1;
    uint64_t offset = 0;
    size_t length = 0;
  };
  Dmabuf lastDmabuf;
  uint64_t dmabufBytes = 0;  // that went straight in and out of such memory
};

// A function of the fake; null where the real library is loaded, or none.
template <class Function>
Function* fakeVerbs(const char* name) {
  void* library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD);
  return library ? reinterpret_cast<Function*>(dlsym(library, name)) : nullptr;
}

}  // namespace hmc::test
