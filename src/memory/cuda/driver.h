#pragma once

#include "base/dynamic_library.h"
#include "hmc/result.h"
#include "memory/cuda/driver_api.h"

namespace hmc::cuda {

inline CuPointer address(const void* ptr) {
  return reinterpret_cast<CuPointer>(ptr);
}
inline char* pointer(CuPointer address) {
  return reinterpret_cast<char*>(address);  // NOLINT
}

// libcuda.so.1, which comes with NVIDIA's kernel driver: all functions that we use, or nothing.
class Driver {
 public:
  // Loads and initialises it. The sentence names the file, symbol or driver that is missing.
  static Result<Driver> load(const char* library = "libcuda.so.1");

  // Ok, or what `call` failed with, in the driver's words: "cuMemCreate: out of memory
  // (CUDA_ERROR_OUT_OF_MEMORY)".
  Status check(CuResult result, const char* call) const;
  // After these every call of the process on that device fails the same way.
  static bool isSticky(CuResult result);

  int version = 0;  // 12040 is CUDA 12.4
#define HMC_ROW(name, arguments) CuResult(*name) arguments = nullptr;
  HMC_CUDA_FUNCTIONS(HMC_ROW)
#undef HMC_ROW

 private:
  explicit Driver(DynamicLibrary library) : library_(std::move(library)) {}
  DynamicLibrary library_;
};

// HMC_CUDA(driver, cuMemRelease, handle): leaves the function with the Status of a call that
// failed.
#define HMC_CUDA(driver, name, ...) HMC_TRY((driver).check((driver).name(__VA_ARGS__), #name))

// The context of one device, current in this thread as long as this lives. Where it is current
// already, as in threads that use torch, that is one quick question to the driver.
class Current {
 public:
  Current(const Driver& driver, CuContext context) : driver_(driver) {
    CuContext now = nullptr;
    if (driver_.cuCtxGetCurrent(&now) == kSuccess && now && now == context) return;
    result_ = driver_.cuCtxPushCurrent_v2(context);
    pushed_ = result_ == kSuccess;
  }
  ~Current() {
    CuContext ours = nullptr;
    if (pushed_) (void)driver_.cuCtxPopCurrent_v2(&ours);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  Status status() const { return driver_.check(result_, "cuCtxPushCurrent"); }

 private:
  const Driver& driver_;
  CuResult result_ = kSuccess;
  bool pushed_ = false;
};

}  // namespace hmc::cuda
