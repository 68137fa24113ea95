#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "fakes/fake_libcuda.h"
#include "fakes/must.h"
#include "memory/copy.h"
#include "memory/cuda/cuda_backend.h"

namespace hmc::cuda {

// The backend over tests/fakes/fake_libcuda*.cc, which LD_LIBRARY_PATH puts before NVIDIA's.
class FakeCuda : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(test::fakeCuda<size_t()>("hmcFakeCudaDepth")) << "this is the real libcuda";
  }

  // A function of the fake that the backend does not use.
  template <class Function, class... Arguments>
  static auto call(const char* name, Arguments... arguments) {
    return test::fakeCuda<Function>(name)(arguments...);
  }
  static void fail(const char* function, int nth, CuResult code) {
    call<void(const char*, int, int)>("hmcFakeCudaFail", function, nth, code);
  }
  static size_t depth() { return call<size_t()>("hmcFakeCudaDepth"); }
  static test::FakeCudaLive live() {
    test::FakeCudaLive now;
    call<void(test::FakeCudaLive*)>("hmcFakeCudaLive", &now);
    return now;
  }
  static CuContext currentContext() {
    CuContext context = nullptr;
    EXPECT_EQ(call<CuResult(CuContext*)>("cuCtxGetCurrent", &context), kSuccess);
    return context;
  }
  CuContext contextOf(int index) {
    CuContext context = nullptr;
    EXPECT_EQ(driver.cuDevicePrimaryCtxRetain(&context, index), kSuccess);
    return context;
  }
  // As torch and others allocate.
  Region allocateAsOthersDo(size_t size, int index = 0) {
    Current current(driver, contextOf(index));
    CuPointer made = 0;
    EXPECT_EQ(call<CuResult(CuPointer*, size_t)>("cuMemAlloc_v2", &made, size), kSuccess);
    return {pointer(made), size, {DeviceKind::cuda, index}};
  }
  void freeAsOthersDo(const Region& region) {
    Current current(driver, contextOf(region.device.index));
    EXPECT_EQ(call<CuResult(CuPointer)>("cuMemFree_v2", address(region.ptr)), kSuccess);
  }

  static Region host(std::string& bytes) { return {bytes.data(), bytes.size(), Device{}}; }
  Status copyOn(const DeviceQueue& queue, const Region& dst, const Region& src) {
    return backend->copyAll(dst, src, queue);
  }
  Status copyNow(const Region& dst, const Region& src) {
    const DeviceQueue queue{dst.device.isHost() ? src.device : dst.device};
    HMC_TRY(copyOn(queue, dst, src));
    HMC_ASSIGN(auto done, backend->event(queue.device.index));
    HMC_TRY(done->record(queue));
    return waitFor(*done, std::chrono::seconds(60));
  }
  void write(const Region& dst, std::string bytes) {
    Status status = copyNow(dst, host(bytes));
    EXPECT_TRUE(status.ok()) << status.toString();
  }
  std::string read(const Region& src) {
    std::string bytes(src.size, '?');
    Status status = copyNow(host(bytes), src);
    EXPECT_TRUE(status.ok()) << status.toString();
    return bytes;
  }

  std::unique_ptr<CudaBackend> backend = test::must(CudaBackend::create());
  const Driver& driver = backend->driver();
};

}  // namespace hmc::cuda
