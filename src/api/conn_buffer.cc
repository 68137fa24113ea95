#include "hmc/conn_buffer.h"

#include <stdexcept>

#include "api/documented_types.h"
#include "base/error.h"

namespace hmc {

namespace {

enum class Direction { write, read };

// Between the buffer and memory outside, which is the host's unless `onGpu`.
Status transfer(Direction direction, const ConnBuffer& buffer, size_t bias, void* outside,
                size_t size, bool onGpu) {
  const char* what = direction == Direction::write ? "write" : "read";
  if (!fits(bias, size, buffer.buffer_size))
    return rangeError(what, size, "", bias, buffer.buffer_size);
  if (size == 0) return Status();
  if (!outside)
    return error(Code::invalidArgument, "a {} of {} bytes has a null pointer", what, size);
  Region other{outside, size, Device{}};
  if (onGpu) {
    HMC_ASSIGN(other.device, deviceOf(outside));
  }
  const Region inside = regionOf(buffer).slice(bias, size);
  return direction == Direction::write ? move(inside, other) : move(other, inside);
}

}  // namespace

ConnBuffer::ConnBuffer(int device, size_t size, MemoryType type)
    : buffer_size(size), mem_type(resolved(type)), device_id(device) {
  auto memory = std::make_unique<Memory>(device_id, mem_type);
  if (memory->allocatePeerableBuffer(&ptr, buffer_size) != status_t::SUCCESS) {
    throw std::runtime_error(lastError());
  }
  mem_ops = memory.release();
}

ConnBuffer::~ConnBuffer() {
  mem_ops->freeBuffer(ptr);
  delete mem_ops;
}

status_t ConnBuffer::writeFromCpu(const void* src, size_t size, size_t bias) {
  return report(transfer(Direction::write, *this, bias, const_cast<void*>(src), size, false));
}

status_t ConnBuffer::readToCpu(void* dest, size_t size, size_t bias) {
  return report(transfer(Direction::read, *this, bias, dest, size, false));
}

status_t ConnBuffer::writeFromGpu(const void* src, size_t size, size_t bias) {
  return report(transfer(Direction::write, *this, bias, const_cast<void*>(src), size, true));
}

status_t ConnBuffer::readToGpu(void* dest, size_t size, size_t bias) {
  return report(transfer(Direction::read, *this, bias, dest, size, true));
}

status_t ConnBuffer::copyWithin(size_t dstBias, size_t srcBias, size_t size) {
  for (size_t bias : {srcBias, dstBias}) {
    if (!fits(bias, size, buffer_size))
      return report(rangeError("copy", size, "", bias, buffer_size));
  }
  const Region whole = regionOf(*this);
  return report(move(whole.slice(dstBias, size), whole.slice(srcBias, size)));
}

}  // namespace hmc
