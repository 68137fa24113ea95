#include "transport/tcp/areas.h"

#include "base/random.h"
#include "transport/tcp/address.h"

namespace hmc::tcp {

uint64_t Areas::add(const std::shared_ptr<Area>& area) {
  std::lock_guard lock(mutex_);
  while (true) {
    const uint64_t id = randomU64();
    if (areas_.emplace(id, area).second) return id;
  }
}

void Areas::remove(uint64_t id) {
  std::shared_ptr<Area> area;
  {
    std::lock_guard lock(mutex_);
    auto found = areas_.find(id);
    if (found == areas_.end()) return;
    area = std::move(found->second);
    areas_.erase(found);
  }
  std::lock_guard lock(area->busy);
  area->gone = true;
}

std::shared_ptr<Area> Areas::find(uint64_t id) {
  std::lock_guard lock(mutex_);
  auto found = areas_.find(id);
  return found == areas_.end() ? nullptr : found->second;
}

namespace {

class TcpRegistration : public Registration {
 public:
  TcpRegistration(Areas& areas, const Region& what, Access how)
      : Registration(what, how),
        areas_(areas),
        id_(areas.add(std::make_shared<Area>(what, how))),
        key_(Key{id_, what.size, how == Access::readWrite}.encode()) {}
  ~TcpRegistration() override { areas_.remove(id_); }

  const std::string& key() const override { return key_; }

 private:
  Areas& areas_;
  const uint64_t id_;
  const std::string key_;
};

}  // namespace

std::unique_ptr<Registration> makeRegistration(Areas& areas, const Region& region, Access access) {
  return std::make_unique<TcpRegistration>(areas, region, access);
}

}  // namespace hmc::tcp
