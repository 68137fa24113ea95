#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transfer/engine.h"
#include "transport/transport.h"

namespace hmc {

class NodeImpl;

// Memory that a Node has made reachable through each of its transports that can. Thread-safe: it
// does not change.
class LocalMemory {
 public:
  // With `owned`, the memory came from its backend's allocate() and goes back at the end.
  static std::shared_ptr<LocalMemory> create(std::shared_ptr<NodeImpl> node, std::string name,
                                             const Region& region, Access access, bool owned);
  ~LocalMemory();

  const std::string& name() const { return name_; }
  const Region& region() const { return region_; }
  Access access() const { return access_; }
  const NodeImpl* node() const { return node_.get(); }
  // Where it lies when it is memory of the host, else null.
  char* host() const { return host_; }

  // Through the Node's i-th transport.
  struct Entry {
    std::unique_ptr<Registration> registration;  // none when `why` says so
    Status why;
    bool staged = false;  // transfers from here go through the host
  };
  const Entry& through(size_t transport) const { return entries_[transport]; }

  // What a peer needs to open it.
  std::string describe() const;

 private:
  LocalMemory(std::shared_ptr<NodeImpl> node, std::string name, const Region& region, Access access,
              bool owned);

  const std::shared_ptr<NodeImpl> node_;
  const std::string name_;
  const Region region_;
  char* const host_;
  const Access access_;
  const bool owned_;
  std::vector<Entry> entries_;
};

// The other side of LocalMemory::describe().
struct RegionDescription {
  struct Key {
    std::string transport;
    std::string bytes;
  };
  uint64_t size = 0;
  Device device;
  Access access = Access::read;
  std::vector<Key> keys;

  static Result<RegionDescription> decode(std::string_view bytes);
  const std::string* keyFor(const std::string& transport) const;
};

}  // namespace hmc
