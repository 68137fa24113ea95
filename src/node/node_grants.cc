#include "base/codec.h"
#include "base/error.h"
#include "base/random.h"
#include "node/node_impl.h"

// What peers may open of our memory: by name, or by a grant.

namespace hmc {

namespace {

// The transports that a peer asks about.
std::vector<std::string> readNames(Reader& in) {
  std::vector<std::string> names;
  for (uint32_t left = in.u32(); left > 0 && !in.failed(); --left) names.push_back(in.string());
  return names;
}

}  // namespace

std::vector<std::string> NodeImpl::served(const PeerState& peer,
                                          std::vector<std::string> transports) const {
  for (size_t i = 0; i < engines_.size(); ++i) {
    if (!serves(i, peer)) std::erase(transports, factsOf(i).name);
  }
  return transports;
}

Result<std::string> NodeImpl::describeRegion(const std::shared_ptr<PeerState>& peer,
                                             std::string_view request) {
  Reader in(request);
  const std::string wanted = in.string();
  const auto transports = readNames(in);
  HMC_TRY(in.finish("the request for a region"));
  if (grantsOnly_) {
    return error(Code::permissionDenied,
                 "{} opens its regions by grants alone, not by name: ask its owner for a grant "
                 "(LocalRegion::grant, region.grant) and open that",
                 name_);
  }
  HMC_ASSIGN(auto memory, memory_.find(wanted, peer->channel().proven()));
  return memory->describe(peer, served(*peer, transports));
}

Result<std::string> NodeImpl::describeGranted(const std::shared_ptr<PeerState>& peer,
                                              std::string_view request) {
  Reader in(request);
  const std::string bytes = in.string();
  const uint64_t opening = in.u64();
  const auto transports = readNames(in);
  HMC_TRY(in.finish("the request for a region by a grant"));
  HMC_ASSIGN(const GrantToken grant, GrantToken::decode(bytes));
  if (grant.owner != id())
    return error(Code::permissionDenied, "the grant was not made by {}, or before its restart",
                 name_);
  HMC_TRY(grant.verify(grantKey_));
  HMC_TRY(grant.checkUse(peer->channel().peer().id, wallClock()));
  HMC_ASSIGN(const auto region, memory_.find(grant.region, grant.number));
  const GrantLimit& allowed = grant.allowed();
  const auto makePart = [&] {
    return std::make_shared<ExportedMemory>(engines_, grant.region,
                                            region->region().slice(allowed.offset, allowed.size),
                                            allowed.access, nextMemoryNumber(), Exposure::exact);
  };
  HMC_ASSIGN(auto part, granted_.open(*peer, opening, region, grant, makePart));
  return part->describe(peer, served(*peer, transports));
}

Result<std::string> NodeImpl::closeGranted(const PeerState& peer, std::string_view request) {
  Reader in(request);
  const uint64_t opening = in.u64();
  HMC_TRY(in.finish("the end of a region that was opened by a grant"));
  granted_.closed(peer, opening);
  return std::string();
}

Result<std::string> NodeImpl::hearRelease(const PeerState& peer, std::string_view request) {
  Reader in(request);
  const uint64_t number = in.u64();
  HMC_TRY(in.finish("the release of a region"));
  memory_.released(peer, number);
  granted_.released(peer, number);
  return std::string();
}

Result<std::shared_ptr<const ExportedMemory>> NodeImpl::registered(const PeerState& peer,
                                                                   const std::string& name,
                                                                   uint64_t number) const {
  if (auto part = granted_.find(peer, number)) return part->use();
  if (grantsOnly_) {
    return error(Code::permissionDenied, "{} has not opened the region \"{}\" by a grant",
                 peer.title(), name);
  }
  HMC_ASSIGN(auto memory, memory_.find(name, number));
  return memory->use();
}

Result<GrantToken> NodeImpl::grant(const ExportedMemory& memory,
                                   const GrantOptions& options) const {
  if (memory.revoked())
    return error(Code::notFound, "region \"{}\" was revoked: there is nothing to grant",
                 memory.name());
  GrantToken head;
  head.owner = id();
  head.number = memory.number();
  head.region = memory.name();
  head.id = randomBytes(GrantToken::kIdSize);
  return GrantToken::make(grantKey_, std::move(head),
                          {0, memory.region().size, memory.access(), 0, ""}, options);
}

Status NodeImpl::revoke(const GrantToken& grant, std::chrono::nanoseconds timeout) {
  return granted_.endRevoke(granted_.beginRevoke(grant.id), Deadline(timeout), timeout);
}

// In the child of a fork there is nobody to ask, and the memory is the child's own.
Status NodeImpl::revoke(const std::shared_ptr<ExportedMemory>& memory,
                        std::chrono::nanoseconds timeout) {
  if (fork_.inChild()) return Status();
  const Deadline deadline(timeout);
  memory_.beginRevoke(memory);
  const auto parts = granted_.beginRevoke(*memory);
  const Status whole = memory_.endRevoke(memory, deadline, timeout);
  const Status granted = granted_.endRevoke(parts, deadline, timeout);
  return whole.ok() ? granted : whole;
}

}  // namespace hmc
