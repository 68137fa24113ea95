#include "memory/cpu/cpu_backend.h"

#include <fcntl.h>

#include <cstring>
#include <functional>

#include "base/error.h"
#include "memory/copy.h"
#include "memory/populate.h"

namespace hmc {

namespace {

bool overlap(const Region& a, const Region& b, size_t size) {
  std::less<const char*> before;
  return before(a.at(0), b.at(size)) && before(b.at(0), a.at(size));
}

}  // namespace

CpuBackend::CpuBackend() : Backend({DeviceKind::cpu, "host memory", 1}) {}

CpuBackend::Allocations::const_iterator CpuBackend::around(const void* ptr) const {
  auto* byte = static_cast<const char*>(ptr);
  auto next = allocations_.upper_bound(byte);
  if (next == allocations_.begin()) return allocations_.end();
  auto found = std::prev(next);
  return byte < found->first + found->second.size ? found : allocations_.end();
}

Result<Region> CpuBackend::allocate(int index, size_t size) {
  if (index != 0) {
    return error(Code::invalidArgument, "host memory has one device, 0; device {} was asked for",
                 index);
  }
  HMC_ASSIGN(auto memory, createSharedMemory(size));
  Region region{memory.mapping.get(), size, Device{}};
  // Here and not where a transport registers it: the first transfer over any of them would pay.
  populate(region, Access::readWrite);
  std::lock_guard lock(mutex_);
  allocations_.emplace(region.at(0), Allocation{std::move(memory), size});
  return region;
}

Status CpuBackend::release(void* ptr) {
  Allocations::node_type gone;  // unmapped after the lock is given back
  std::lock_guard lock(mutex_);
  gone = allocations_.extract(static_cast<const char*>(ptr));
  if (gone.empty()) {
    return error(Code::invalidArgument,
                 "{} cannot be released: it is not the start of host memory allocated here", ptr);
  }
  return Status();
}

Status CpuBackend::copy(const Region& dst, const Region& src, const Stream*) {
  if (!dst.device.isHost() || !src.device.isHost()) {
    return error(Code::invalidArgument, "host memory cannot copy from {} to {}",
                 src.device.toString(), dst.device.toString());
  }
  if (dst.size < src.size) {
    return error(Code::outOfRange, "{} bytes cannot be copied into {} bytes", src.size, dst.size);
  }
  if (src.size == 0) return Status();
  if (!dst.ptr || !src.ptr) {
    return error(Code::invalidArgument, "a copy of {} bytes has a null pointer", src.size);
  }
  if (overlap(dst, src, src.size)) {
    std::memmove(dst.ptr, src.ptr, src.size);
  } else {
    copyHost(dst.ptr, src.ptr, src.size);
  }
  return Status();
}

Status CpuBackend::wait(const Stream&) {
  return Status();
}

Result<Region> CpuBackend::locate(const void* ptr) {
  std::lock_guard lock(mutex_);
  auto found = around(ptr);
  if (found == allocations_.end()) {
    return error(Code::notFound, "{} is not in host memory allocated here", ptr);
  }
  return Region{const_cast<char*>(found->first), found->second.size, Device{}};
}

Result<Share> CpuBackend::share(const Region& region) {
  std::lock_guard lock(mutex_);
  auto found = around(region.ptr);
  if (found == allocations_.end()) {
    return error(Code::unsupported,
                 "host memory at {} cannot be shared: only what allocate() made can be",
                 region.ptr);
  }
  auto offset = static_cast<size_t>(region.at(0) - found->first);
  if (!fits(offset, region.size, found->second.size)) {
    return error(Code::outOfRange,
                 "{} bytes at offset {} would pass the end of a {}-byte allocation", region.size,
                 offset, found->second.size);
  }
  Fd fd(fcntl(found->second.memory.fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!fd) return errnoStatus("duplicate the descriptor of host memory");
  return Share{std::move(fd), {}, offset, region.size, Device{}};
}

Result<Region> CpuBackend::attach(const Share& share) {
  if (!share.device.isHost() || !share.fd) {
    return error(Code::invalidArgument, "a share of {} without a memfd cannot be host memory",
                 share.device.toString());
  }
  HMC_ASSIGN(auto window, mapWindow(share.fd.get(), share.offset, share.size));
  std::lock_guard lock(mutex_);
  attached_.emplace(window.ptr, std::move(window.mapping));
  return Region{window.ptr, share.size, Device{}};
}

Status CpuBackend::detach(const Region& region) {
  std::map<const char*, Mapping>::node_type gone;  // unmapped after the lock is given back
  std::lock_guard lock(mutex_);
  gone = attached_.extract(region.at(0));
  if (gone.empty()) {
    return error(Code::invalidArgument, "{} cannot be detached: it was not attached here",
                 region.ptr);
  }
  return Status();
}

}  // namespace hmc
