#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "transfer/engine.h"
#include "transport/transport.h"

namespace hmc {

class NodeImpl;

// Memory that a Node has made reachable through each of its transports that can; through one whose
// use changes the process (Transport::Facts::onDemand) only when somebody needs it there. Safe from
// any thread.
class LocalMemory {
 public:
  // With `owned`, the memory came from its backend's allocate() and goes back at the end; else
  // `owner` may keep it alive.
  static std::shared_ptr<LocalMemory> create(std::shared_ptr<NodeImpl> node, std::string name,
                                             const Region& region, Access access, bool owned,
                                             std::shared_ptr<const void> owner);
  ~LocalMemory();

  const std::string& name() const { return name_; }
  const Region& region() const { return region_; }
  Access access() const { return access_; }
  const NodeImpl* node() const { return node_.get(); }
  // No other memory of the Node ever has the same.
  uint64_t number() const { return number_; }
  // Where it lies when it is memory of the host, else null.
  char* host() const { return host_; }

  // Through the Node's i-th transport.
  struct Entry {
    std::unique_ptr<Registration> registration;  // none when `why` says so
    Status why;
    bool staged = false;  // transfers from here go through slots of the host
  };
  const Entry& through(size_t transport) const {
    Slot& slot = slots_[transport];
    if (!slot.filled.load(std::memory_order_acquire)) fill(slot, transport);
    return slot.entry;
  }

  // What a peer needs to open it over these transports.
  std::string describe(const std::vector<std::string>& transports) const;

 private:
  LocalMemory(std::shared_ptr<NodeImpl> node, std::string name, const Region& region, Access access,
              bool owned, std::shared_ptr<const void> owner);

  struct Slot {
    std::once_flag once;
    std::atomic<bool> filled{false};  // spares through() the flag, which costs as much as a copy
    Entry entry;                      // set once
  };
  void fill(Slot& slot, size_t transport) const;
  void registerThrough(Entry& entry, size_t transport) const;

  const std::shared_ptr<const void> owner_;  // first: goes last
  const std::shared_ptr<NodeImpl> node_;
  const std::string name_;
  const Region region_;
  char* const host_;
  const Access access_;
  const bool owned_;
  const uint64_t number_;
  mutable std::vector<Slot> slots_;
};

// The other side of LocalMemory::describe().
struct RegionDescription {
  struct Offer {
    std::string transport;
    std::string key;
    Status why;  // there is no key
  };
  uint64_t size = 0;
  Device device;
  Access access = Access::read;
  uint64_t number = 0;  // LocalMemory::number()
  std::vector<Offer> offers;

  static Result<RegionDescription> decode(std::string_view bytes);
  const Offer* offerFor(const std::string& transport) const;
};

}  // namespace hmc
