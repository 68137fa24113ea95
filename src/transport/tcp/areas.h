#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "transport/transport.h"

namespace hmc::tcp {

// Memory that peers may reach. Who moves bytes in or out holds `busy` meanwhile, one piece at a
// time, and stops when `gone`.
struct Area {
  Area(const Region& what, Access how) : region(what), access(how) {}
  const Region region;
  const Access access;
  std::mutex busy;
  bool gone = false;  // guarded by busy
};

// The areas of one transport, by an unguessable number: a peer reaches what it was given a key of.
// Safe from any thread.
class Areas {
 public:
  uint64_t add(const std::shared_ptr<Area>& area);
  // When it returns, no byte of the area moves any more.
  void remove(uint64_t id);
  std::shared_ptr<Area> find(uint64_t id);

 private:
  std::mutex mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<Area>> areas_;  // guarded by mutex_
};

// Must not outlive `areas`.
std::unique_ptr<Registration> makeRegistration(Areas& areas, const Region& region, Access access);

}  // namespace hmc::tcp
