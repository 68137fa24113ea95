#pragma once

#include <memory>
#include <string>

#include "transport/transport.h"
#include "transport/ucx/address.h"
#include "transport/ucx/areas.h"

namespace hmc::ucx {

// Memory of ours that peers reach.
class UcxRegistration final : public Registration {
 public:
  // Must not outlive `areas`.
  static Result<std::unique_ptr<Registration>> create(Areas& areas, const Region& region,
                                                      Access access);
  ~UcxRegistration() override { areas_.remove(area_); }

  const std::string& key() const override { return key_; }

 private:
  UcxRegistration(Areas& areas, const Region& what, Access how)
      : Registration(what, how),
        areas_(areas),
        area_(areas.add(what, how)),
        key_(Key{area_, what.size, how}.encode()) {}

  Areas& areas_;
  const uint64_t area_;
  const std::string key_;
};

// A peer's memory.
class UcxRemote final : public RemoteMemory {
 public:
  UcxRemote(const Key& key, PathWords words)
      : RemoteMemory(key.size, key.access, {}, std::move(words)), area(key.area) {}

  const uint64_t area;
};

}  // namespace hmc::ucx
