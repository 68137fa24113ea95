#include "memory/cuda/device.h"

#include "base/error.h"

namespace hmc::cuda {

namespace {
// CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are no objects: they belong to the current context.
bool isDefaultStream(const void* stream) {
  return reinterpret_cast<uintptr_t>(stream) <= 2;
}
}  // namespace

Status CudaDevice::prepare() {
  std::lock_guard lock(mutex_);
  if (isReady()) return Status();
  if (!context_) HMC_CUDA(driver_, cuDevicePrimaryCtxRetain, &context_, handle_);
  Current current(driver_, context_);
  HMC_TRY(current.status());
  auto create = [this](CuStream& stream) -> Status {
    if (!stream) HMC_CUDA(driver_, cuStreamCreateWithPriority, &stream, kStreamNonBlocking, 0);
    return Status();
  };
  for (CuStream& lane : lanes_) HMC_TRY(create(lane));
  HMC_TRY(create(zeroing_));
  ready_.store(true, std::memory_order_release);
  return Status();
}

Result<CuContext> CudaDevice::context() {
  if (!isReady()) {
    Status made = prepare();
    if (!made.ok()) return made.within(fmt::format("cuda:{} cannot be used", index_));
  }
  return context_;
}

Result<CudaDevice::Stream> CudaDevice::streamOf(const DeviceQueue& queue) {
  HMC_ASSIGN(CuContext context, this->context());
  if (!queue.stream) return Stream{context, lanes_[queue.lane]};
  Stream found{context, static_cast<CuStream>(queue.stream)};
  if (!isDefaultStream(queue.stream)) {
    HMC_CUDA(driver_, cuStreamGetCtx, found.stream, &found.context);
  }
  return found;
}

Result<CuResult> CudaDevice::query() {
  HMC_ASSIGN(CuContext context, this->context());
  Current current(driver_, context);
  HMC_TRY(current.status());
  return driver_.cuStreamQuery(lanes_[0]);
}

Status CudaDevice::health() {
  HMC_ASSIGN(const CuResult result, query());
  if (result == kNotReady) return Status();
  return driver_.check(result, "cuStreamQuery").within(fmt::format("cuda:{} failed", index_));
}

bool CudaDevice::isBroken() {
  auto result = query();
  return result.ok() && Driver::isSticky(*result);
}

bool CudaDevice::has(int attribute) const {
  int value = 0;
  return driver_.cuDeviceGetAttribute(&value, attribute, handle_) == kSuccess && value != 0;
}

}  // namespace hmc::cuda
