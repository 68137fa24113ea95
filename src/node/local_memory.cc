#include "node/local_memory.h"

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "memory/backends.h"
#include "node/node_impl.h"

namespace hmc {

std::shared_ptr<LocalMemory> LocalMemory::create(std::shared_ptr<NodeImpl> node,
                                                 const std::string& name, const Region& region,
                                                 Access access, bool owned,
                                                 std::shared_ptr<const void> owner,
                                                 const ArrayType& type) {
  return ownedHere(
      new LocalMemory(std::move(node), name, region, access, owned, std::move(owner), type));
}

LocalMemory::LocalMemory(std::shared_ptr<NodeImpl> node, const std::string& name,
                         const Region& region, Access access, bool owned,
                         std::shared_ptr<const void> owner, const ArrayType& type)
    : owner_(std::move(owner)),
      node_(std::move(node)),
      name_(name),
      region_(region),
      host_(region.device.isHost() ? region.at(0) : nullptr),
      owned_(owned),
      registrations_(node_->engines(), region, access, Exposure::ours),
      exported_(name.empty() ? nullptr
                             : std::make_shared<ExportedMemory>(node_->engines(), name, region,
                                                                access, node_->nextMemoryNumber(),
                                                                Exposure::peers, type)) {}

Status LocalMemory::revoke(std::chrono::nanoseconds timeout) const {
  return exported_ ? node_->revoke(exported_, timeout) : Status();
}

Result<Grant> LocalMemory::grant(const GrantOptions& options) const {
  if (!exported_) {
    return error(Code::invalidArgument,
                 "memory without a name is out of peers' reach and cannot be granted: register it "
                 "under a name");
  }
  HMC_ASSIGN(auto token, node_->grant(*exported_, options));
  return Grant(std::move(token));
}

Status LocalMemory::revoke(const Grant& grant, std::chrono::nanoseconds timeout) const {
  const GrantToken& token = *grant.token_;
  if (!exported_ || token.owner != node_->id() || token.number != exported_->number()) {
    return error(Code::invalidArgument, "that grant is for region \"{}\" and not for \"{}\"",
                 printable(token.region), name_);
  }
  return node_->revoke(token, timeout);
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
