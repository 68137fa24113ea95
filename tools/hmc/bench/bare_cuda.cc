#include "bench/bare_cuda.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "try.h"

namespace hmc::bench {

namespace {

// The handles of cuda.h are pointers, device addresses are integers.
using DevicePointer = unsigned long long;  // NOLINT
using Handle = void*;

// row(symbol in libcuda.so.1, arguments)
// clang-format off
#define HMC_BARE_CUDA(row) \
  row(cuInit, (unsigned)) \
  row(cuGetErrorString, (int, const char**)) \
  row(cuDeviceGet, (int*, int)) \
  row(cuDevicePrimaryCtxRetain, (Handle*, int)) \
  row(cuCtxPushCurrent_v2, (Handle)) \
  row(cuMemAlloc_v2, (DevicePointer*, size_t)) \
  row(cuMemHostAlloc, (void**, size_t, unsigned)) \
  row(cuStreamCreateWithPriority, (Handle*, unsigned, int)) \
  row(cuStreamSynchronize, (Handle)) \
  row(cuStreamWriteValue32_v2, (Handle, DevicePointer, uint32_t, unsigned)) \
  row(cuStreamWaitValue32_v2, (Handle, DevicePointer, uint32_t, unsigned)) \
  row(cuMemcpyAsync, (DevicePointer, DevicePointer, size_t, Handle))
// clang-format on

struct Calls {
#define HMC_ROW(name, arguments) int(*name) arguments = nullptr;
  HMC_BARE_CUDA(HMC_ROW)
#undef HMC_ROW
};

Result<Calls> loadCuda() {
  // Never closed: threads of the driver run until the process ends.
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Status(Code::notFound, fmt::format("libcuda.so.1 could not be loaded: {}", dlerror()));
  Calls calls;
#define HMC_ROW(name, arguments)                                              \
  calls.name = reinterpret_cast<decltype(calls.name)>(dlsym(library, #name)); \
  if (calls.name == nullptr)                                                  \
    return Status(Code::unsupported, "libcuda.so.1 has no " #name "(): the driver is too old");
  HMC_BARE_CUDA(HMC_ROW)
#undef HMC_ROW
  return calls;
}

class LoadedCuda final : public BareCuda {
 public:
  explicit LoadedCuda(const Calls& calls) : calls_(calls) {}

  Status allocate(int device, size_t bytes) {
    constexpr unsigned kNonBlocking = 1;
    int handle = 0;
    Handle context = nullptr;
    TOOL_TRY(check(calls_.cuInit(0), "cuInit"));
    TOOL_TRY(check(calls_.cuDeviceGet(&handle, device), "cuDeviceGet"));
    TOOL_TRY(check(calls_.cuDevicePrimaryCtxRetain(&context, handle), "cuDevicePrimaryCtxRetain"));
    TOOL_TRY(check(calls_.cuCtxPushCurrent_v2(context), "cuCtxPushCurrent"));
    for (DevicePointer& one : device_)
      TOOL_TRY(check(calls_.cuMemAlloc_v2(&one, bytes), "cuMemAlloc"));
    for (auto [where, size] : {std::pair{&host_, bytes}, std::pair{&arrived_, sizeof(uint32_t)}}) {
      void* pinned = nullptr;
      TOOL_TRY(check(calls_.cuMemHostAlloc(&pinned, size, 0), "cuMemHostAlloc"));
      *where = reinterpret_cast<DevicePointer>(pinned);
    }
    for (Handle& one : streams_) {
      TOOL_TRY(check(calls_.cuStreamCreateWithPriority(&one, kNonBlocking, 0), "cuStreamCreate"));
    }
    return Status();
  }

  Status copy(BareWay way, size_t bytes, size_t count) override {
    const DevicePointer from = way == BareWay::hostToDevice ? host_ : device_[0];
    const DevicePointer to = way == BareWay::deviceToHost ? host_ : device_[1];
    for (size_t i = 0; i < count; ++i) TOOL_TRY(enqueue(to, from, bytes, 0));
    return synchronise(0);
  }

  Status copyBothWays(size_t bytes) override {
    TOOL_TRY(enqueue(host_, device_[0], bytes, 0));
    TOOL_TRY(enqueue(device_[1], host_ + bytes, bytes, 1));
    TOOL_TRY(synchronise(0));
    return synchronise(1);
  }

  Status copyThroughHost(size_t bytes, size_t chunk) override {
    constexpr unsigned kAtLeast = 0;  // CU_STREAM_WAIT_VALUE_GEQ, modulo 2^32
    for (size_t done = 0; done < bytes; done += chunk) {
      const size_t size = std::min(chunk, bytes - done);
      ++chunks_;
      TOOL_TRY(enqueue(host_ + done, device_[0] + done, size, 0));
      TOOL_TRY(check(calls_.cuStreamWriteValue32_v2(streams_[0], arrived_, chunks_, 0),
                     "cuStreamWriteValue32"));
      TOOL_TRY(check(calls_.cuStreamWaitValue32_v2(streams_[1], arrived_, chunks_, kAtLeast),
                     "cuStreamWaitValue32"));
      TOOL_TRY(enqueue(device_[1] + done, host_ + done, size, 1));
    }
    return synchronise(1);
  }

 private:
  Status check(int result, const char* call) const {
    if (result == 0) return Status();
    const char* text = nullptr;
    (void)calls_.cuGetErrorString(result, &text);
    return Status(Code::failed, fmt::format("{}: {} ({})", call, text ? text : "error", result));
  }
  Status enqueue(DevicePointer to, DevicePointer from, size_t bytes, int stream) const {
    return check(calls_.cuMemcpyAsync(to, from, bytes, streams_[stream]), "cuMemcpyAsync");
  }
  Status synchronise(int stream) const {
    return check(calls_.cuStreamSynchronize(streams_[stream]), "cuStreamSynchronize");
  }

  const Calls calls_;
  DevicePointer device_[2] = {};
  DevicePointer host_ = 0;
  DevicePointer arrived_ = 0;  // a word on the host: how many chunks have come there
  uint32_t chunks_ = 0;
  Handle streams_[2] = {};
};

}  // namespace

Result<std::unique_ptr<BareCuda>> BareCuda::open(int device, size_t bytes) {
  TOOL_ASSIGN(const Calls calls, loadCuda());
  auto made = std::make_unique<LoadedCuda>(calls);
  TOOL_TRY(made->allocate(device, bytes));
  return std::unique_ptr<BareCuda>(std::move(made));
}

}  // namespace hmc::bench
