#include "node/local_memory.h"

#include "base/log.h"
#include "memory/backends.h"
#include "node/node_impl.h"

namespace hmc {

std::shared_ptr<LocalMemory> LocalMemory::create(std::shared_ptr<NodeImpl> node,
                                                 const std::string& name, const Region& region,
                                                 Access access, bool owned,
                                                 std::shared_ptr<const void> owner) {
  return ownedHere(new LocalMemory(std::move(node), name, region, access, owned, std::move(owner)));
}

LocalMemory::LocalMemory(std::shared_ptr<NodeImpl> node, const std::string& name,
                         const Region& region, Access access, bool owned,
                         std::shared_ptr<const void> owner)
    : owner_(std::move(owner)),
      node_(std::move(node)),
      name_(name),
      region_(region),
      host_(region.device.isHost() ? region.at(0) : nullptr),
      owned_(owned),
      registrations_(node_->engines(), region, access),
      exported_(name.empty()
                    ? nullptr
                    : std::make_shared<ExportedMemory>(node_->engines(), name, region, access,
                                                       node_->nextMemoryNumber())) {}

Status LocalMemory::revoke(std::chrono::nanoseconds timeout) const {
  return exported_ ? node_->revoke(exported_, timeout) : Status();
}

LocalMemory::~LocalMemory() {
  const Status status = revoke(node_->lease());
  if (!status.ok()) logWarn("{}", status.message());
  registrations_.clear();
  if (!owned_) return;
  if (auto backend = findBackend(region_.device.kind); backend.ok())
    (*backend)->release(region_.ptr);
}

}  // namespace hmc
