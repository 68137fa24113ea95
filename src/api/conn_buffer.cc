#include "hmc/conn_buffer.h"

#include <stdexcept>

#include "api/conn_buffer_region.h"
#include "api/device_map.h"
#include "api/status_map.h"
#include "base/error.h"
#include "memory/copy.h"
#include "memory/device_of.h"

namespace hmc {

namespace {

// checkRange("write", "at", ...): "a write of 8 bytes at offset 3 would pass ..."
Status checkRange(const char* what, const char* where, size_t size, size_t bias, size_t capacity) {
  if (fits(bias, size, capacity)) return Status();
  return error(Code::outOfRange,
               "a {} of {} bytes {} offset {} would pass the end of the {}-byte buffer", what, size,
               where, bias, capacity);
}

Status checkPointer(const char* what, const void* ptr, size_t size) {
  if (ptr) return Status();
  return error(Code::invalidArgument, "a {} of {} bytes has a null pointer", what, size);
}

}  // namespace

Region regionOf(const ConnBuffer& buffer) {
  auto device = deviceFor(buffer.device_id, buffer.mem_type);
  return {buffer.ptr, buffer.buffer_size, device.ok() ? *device : Device{}};
}

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

status_t ConnBuffer::write(const void* src, size_t size, size_t bias, bool fromGpu) {
  Status range = checkRange("write", "at", size, bias, buffer_size);
  if (!range.ok()) return report(range);
  if (size == 0) return status_t::SUCCESS;
  Status pointer = checkPointer("write", src, size);
  if (!pointer.ok()) return report(pointer);
  auto device = fromGpu ? deviceOf(src) : Device{};
  if (!device.ok()) return report(device.status());
  return report(move(regionOf(*this).slice(bias, size), {const_cast<void*>(src), size, *device}));
}

status_t ConnBuffer::read(void* dest, size_t size, size_t bias, bool toGpu) {
  Status range = checkRange("read", "at", size, bias, buffer_size);
  if (!range.ok()) return report(range);
  if (size == 0) return status_t::SUCCESS;
  Status pointer = checkPointer("read", dest, size);
  if (!pointer.ok()) return report(pointer);
  auto device = toGpu ? deviceOf(dest) : Device{};
  if (!device.ok()) return report(device.status());
  return report(move({dest, size, *device}, regionOf(*this).slice(bias, size)));
}

status_t ConnBuffer::writeFromCpu(const void* src, size_t size, size_t bias) {
  return write(src, size, bias, false);
}

status_t ConnBuffer::readToCpu(void* dest, size_t size, size_t bias) {
  return read(dest, size, bias, false);
}

status_t ConnBuffer::writeFromGpu(const void* src, size_t size, size_t bias) {
  return write(src, size, bias, true);
}

status_t ConnBuffer::readToGpu(void* dest, size_t size, size_t bias) {
  return read(dest, size, bias, true);
}

status_t ConnBuffer::copyWithin(size_t dstBias, size_t srcBias, size_t size) {
  Status range = checkRange("copy", "from", size, srcBias, buffer_size);
  if (range.ok()) range = checkRange("copy", "to", size, dstBias, buffer_size);
  if (!range.ok()) return report(range);
  Region whole = regionOf(*this);
  return report(move(whole.slice(dstBias, size), whole.slice(srcBias, size)));
}

}  // namespace hmc
