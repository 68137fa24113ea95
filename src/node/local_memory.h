#pragma once

#include <memory>
#include <string>

#include "hmc/grant.h"
#include "node/exported_memory.h"
#include "node/registrations.h"

namespace hmc {

class NodeImpl;

// Memory that transfers of a Node start from and, if it has a name, that peers can open. The two
// have registrations of their own: those for peers go when the memory is revoked. Safe from any
// thread.
class LocalMemory {
 public:
  // With `owned`, the memory came from its backend's allocate() and goes back at the end; else
  // `owner` may keep it alive.
  static std::shared_ptr<LocalMemory> create(std::shared_ptr<NodeImpl> node,
                                             const std::string& name, const Region& region,
                                             Access access, bool owned,
                                             std::shared_ptr<const void> owner,
                                             const ArrayType& type);
  // Revokes it; that takes the lease at most. Not on the control thread.
  ~LocalMemory();

  const std::string& name() const { return name_; }
  const Region& region() const { return region_; }
  const NodeImpl* node() const { return node_.get(); }
  // Where it lies when it is memory of the host, else null.
  char* host() const { return host_; }
  uint64_t number() const { return exported_ ? exported_->number() : 0; }
  // As peers see it; none without a name.
  const std::shared_ptr<ExportedMemory>& exported() const { return exported_; }

  // For transfers of our own, through the Node's i-th transport.
  const Registrations::Entry& through(size_t transport) const {
    return registrations_.through(transport);
  }

  Status revoke(std::chrono::nanoseconds timeout) const;
  // Of LocalRegion.
  Result<Grant> grant(const GrantOptions& options) const;
  Status revoke(const Grant& grant, std::chrono::nanoseconds timeout) const;

 private:
  LocalMemory(std::shared_ptr<NodeImpl> node, const std::string& name, const Region& region,
              Access access, bool owned, std::shared_ptr<const void> owner, const ArrayType& type);

  const std::shared_ptr<const void> owner_;  // first: goes last
  const std::shared_ptr<NodeImpl> node_;
  const std::string name_;
  const Region region_;
  char* const host_;
  const bool owned_;
  Registrations registrations_;
  const std::shared_ptr<ExportedMemory> exported_;
};

}  // namespace hmc
