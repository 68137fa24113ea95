#include "transport/ucx/areas.h"

#include "base/error.h"
#include "base/random.h"
#include "memory/copy.h"

namespace hmc::ucx {

uint64_t Areas::add(const Region& region, Access access) {
  std::lock_guard lock(mutex_);
  while (true) {
    const uint64_t id = randomU64();
    if (areas_.emplace(id, Area{region, access}).second) return id;
  }
}

void Areas::remove(uint64_t id) {
  std::lock_guard lock(mutex_);
  areas_.erase(id);
}

Status Areas::check(uint64_t id, uint64_t offset, size_t size, bool put) const {
  const char* what = put ? "put" : "get";
  const auto found = areas_.find(id);
  if (found == areas_.end()) {
    return error(Code::notFound, "{} of {} bytes: that memory is no longer registered", what, size);
  }
  const Area& area = found->second;
  if (!fits(offset, size, area.region.size)) {
    return error(Code::outOfRange, "{} of {} bytes at offset {} would pass the end of {} bytes",
                 what, size, offset, area.region.size);
  }
  if (put && area.access != Access::readWrite) {
    return error(Code::permissionDenied, "put of {} bytes into memory that is read-only", size);
  }
  return Status();
}

Status Areas::put(uint64_t id, uint64_t offset, const void* bytes, size_t size, RowCopy& row) {
  std::lock_guard lock(mutex_);
  HMC_TRY(check(id, offset, size, true));
  if (size == 0) return Status();
  const Region place = areas_.at(id).region.slice(offset, size);
  if (!place.device.isHost()) return copy(place, {const_cast<void*>(bytes), size, Device{}});
  row.copy(place.ptr, bytes, size);
  return Status();
}

Status Areas::get(uint64_t id, uint64_t offset, void* bytes, size_t size) {
  std::lock_guard lock(mutex_);
  HMC_TRY(check(id, offset, size, false));
  return copy(Region{bytes, size, Device{}}, areas_.at(id).region.slice(offset, size));
}

}  // namespace hmc::ucx
