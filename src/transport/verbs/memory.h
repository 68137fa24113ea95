#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "transport/transport.h"
#include "transport/verbs/nic.h"

namespace hmc::verbs {

// What may be done to registered memory, and by whom.
struct Rights {
  Access access;
  Exposure exposure;
};

// A range that is locked in memory and registered with every NIC.
struct Pinned {
  std::vector<Handle<ibv_mr>> onNic;  // one for each, in their order
  std::string how;                    // "host memory", "dma-buf", "peer memory"
};

class VerbsRegistration final : public Registration {
 public:
  VerbsRegistration(const Region& region, Access access, std::shared_ptr<const Pinned> pinned);
  const std::string& key() const override { return key_; }
  uint32_t lkey(size_t nic) const { return pinned_->onNic[nic]->lkey; }

 private:
  const std::shared_ptr<const Pinned> pinned_;
  const std::string key_;
};

// A key, decoded.
class VerbsRemote final : public RemoteMemory {
 public:
  static Result<std::unique_ptr<RemoteMemory>> decode(std::string_view key, size_t nics,
                                                      PathTaken path);
  VerbsRemote(uint64_t bytes, Access allowed, PathTaken path, uint64_t base, bool host,
              std::vector<uint32_t> rkeys)
      : RemoteMemory(bytes, allowed, {}, std::move(path)),
        base_(base),
        host_(host),
        rkeys_(std::move(rkeys)) {}

  uint64_t at(uint64_t offset) const { return base_ + offset; }
  uint32_t rkey(size_t nic) const { return rkeys_[nic]; }
  // In host memory, what the NIC acknowledges is visible at once. Device memory is behind a bus of
  // its own: a read after the write makes sure.
  bool visibleWhenAcknowledged() const { return host_; }

 private:
  const uint64_t base_;
  const bool host_;
  const std::vector<uint32_t> rkeys_;
};

// Pins memory; a range that is registered again, with the same access and exposure, is pinned once,
// unless it is exact. Safe from any thread.
class MemoryTable {
 public:
  explicit MemoryTable(const Nics& nics) : nics_(nics) {}
  Result<std::unique_ptr<Registration>> add(const Region& region, Access access,
                                            Exposure exposure = Exposure::peers);
  // How memory of that device would be reached, or why not: tried with a page of it.
  Result<std::string> tryDevice(Device device);

 private:
  using Range = std::tuple<void*, size_t, DeviceKind, Access, Exposure>;
  Result<std::shared_ptr<const Pinned>> pin(const Region& region, Rights rights);

  const Nics& nics_;
  std::mutex mutex_;
  std::map<Range, std::weak_ptr<const Pinned>> ranges_;  // guarded by mutex_
};

}  // namespace hmc::verbs
