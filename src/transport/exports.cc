#include "transport/exports.h"

#include "base/error.h"
#include "base/random.h"

namespace hmc {

std::unique_lock<std::mutex> Export::hold() {
  std::unique_lock lock(mutex_);
  if (removed_.load(std::memory_order_relaxed)) lock.unlock();
  return lock;
}

Status Export::removed(OpKind kind, uint64_t size) {
  return error(Code::notFound, "{} of {} bytes: that memory is no longer registered", opName(kind),
               size);
}

uint64_t Exports::add(const Region& region, Access access) {
  auto added = std::make_shared<Export>(region, access);
  std::lock_guard lock(mutex_);
  while (true) {
    const uint64_t id = randomU64();
    if (id != 0 && exports_.emplace(id, added).second) return id;
  }
}

void Exports::remove(uint64_t id) {
  std::shared_ptr<Export> removed;
  {
    std::lock_guard lock(mutex_);
    auto found = exports_.find(id);
    if (found == exports_.end()) return;
    removed = std::move(found->second);
    exports_.erase(found);
  }
  // The flag comes first: a thread that holds it over and over must not keep us waiting.
  removed->removed_.store(true, std::memory_order_relaxed);
  std::lock_guard lock(removed->mutex_);
}

std::shared_ptr<Export> Exports::find(uint64_t id) {
  std::lock_guard lock(mutex_);
  auto found = exports_.find(id);
  return found == exports_.end() ? nullptr : found->second;
}

}  // namespace hmc
