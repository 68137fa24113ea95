#include "node/open_regions.h"

#include <atomic>

#include "base/error.h"
#include "base/log.h"
#include "node/remote_mapping.h"

namespace hmc {

OpenRegions::Pending::Pending(OpenRegions& regions) : regions_(regions) {
  std::lock_guard lock(regions_.mutex_);
  ++regions_.pending_;
}

OpenRegions::Pending::~Pending() {
  std::lock_guard lock(regions_.mutex_);
  if (--regions_.pending_ == 0) regions_.revokedMeanwhile_.clear();
}

Status OpenRegions::add(RemoteMapping& mapping, uint64_t number) {
  std::lock_guard lock(mutex_);
  if (revokedMeanwhile_.count(number) > 0) return mapping.revokedStatus();
  mappings_.emplace(number, &mapping);
  return Status();
}

void OpenRegions::remove(const RemoteMapping& mapping) {
  std::lock_guard lock(mutex_);
  std::erase_if(mappings_, [&](const auto& one) { return one.second == &mapping; });
}

namespace {
// Held by all who must let go first.
struct Release {
  explicit Release(std::function<void()> what) : then(std::move(what)) {}
  ~Release() {
    if (!failed.load()) then();
  }
  const std::function<void()> then;
  std::atomic<bool> failed{false};
};
}  // namespace

void OpenRegions::revoke(uint64_t number, std::function<void()> released) {
  auto release = std::make_shared<Release>(std::move(released));  // goes after the lock
  std::lock_guard lock(mutex_);
  if (pending_ > 0) revokedMeanwhile_.insert(number);
  auto [first, last] = mappings_.equal_range(number);
  for (auto one = first; one != last; ++one) {
    one->second->revoke([release](const Status& status) mutable {
      if (!status.ok()) {
        logWarn("{}", status.message());
        release->failed.store(true);
      }
      release.reset();
    });
  }
}

}  // namespace hmc
