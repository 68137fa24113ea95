#include "base/codec.h"
#include "base/error.h"
#include "base/random.h"
#include "node/node_impl.h"

// What peers may open of our memory: by name, or by a grant.

namespace hmc {

namespace {

// A peer has no more than that under names, or lies.
constexpr size_t kMostRegions = 1000000;

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
  HMC_TRY(checkOpensByName());
  HMC_ASSIGN(auto memory, memory_.find(wanted, peer->channel().proven()));
  return memory->describe(peer, served(*peer, transports));
}

Status NodeImpl::checkOpensByName() const {
  if (!grantsOnly_) return Status();
  return error(Code::permissionDenied,
               "{} opens its regions by grants alone, not by name: ask its owner for a grant "
               "(LocalRegion::grant, region.grant) and open that",
               name_);
}

Result<std::string> NodeImpl::listRegions(const PeerState& peer, std::string_view request) const {
  HMC_ASSIGN(const auto question, RegionQuestion::decode(request));
  HMC_TRY(checkOpensByName());
  const bool proven = peer.channel().proven();
  if (question.which == RegionQuestion::Which::named) {
    HMC_ASSIGN(const auto memory, memory_.find(question.name, proven));
    return encodeRegions({memory->info()});
  }
  if (proven) return encodeRegions(memory_.listAfter(question.name, kMostListed));
  return error(Code::permissionDenied,
               "{} tells the names of its regions only to peers that know its secret", name_);
}

Result<std::vector<RegionInfo>> NodeImpl::askForRegions(const PeerState& peer,
                                                        const RegionQuestion& what,
                                                        Deadline deadline) const {
  const auto reply = peer.channel().call(kListRegions, what.encode(), deadline);
  if (reply.status().code() == Code::unsupported)
    return error(Code::unsupported, "{} runs an HMC that does not list its regions", peer.title());
  HMC_TRY(reply.status());
  auto regions = decodeRegions(*reply);
  if (!regions.ok()) return regions.status().within(peer.title());
  return regions;
}

Result<std::vector<RegionInfo>> NodeImpl::regionsOf(const PeerState& peer,
                                                    Deadline deadline) const {
  std::vector<RegionInfo> all;
  for (std::string last;; last = all.back().name) {
    HMC_ASSIGN(auto more, askForRegions(peer, {RegionQuestion::Which::after, last}, deadline));
    for (RegionInfo& region : more) {
      // Names that do not grow would never end.
      if (region.name <= (all.empty() ? "" : all.back().name) || all.size() == kMostRegions) {
        return error(Code::failed, "{} does not end the list of its regions after {}", peer.title(),
                     all.size());
      }
      all.push_back(std::move(region));
    }
    if (more.size() < kMostListed) return all;
  }
}

Result<RegionInfo> NodeImpl::regionOf(const PeerState& peer, const std::string& name,
                                      Deadline deadline) const {
  HMC_ASSIGN(auto found, askForRegions(peer, {RegionQuestion::Which::named, name}, deadline));
  if (found.size() == 1) return std::move(found.front());
  return error(Code::failed, "{} answers a question about region \"{}\" with {} regions",
               peer.title(), name, found.size());
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

Result<std::string> NodeImpl::changeAtomically(const PeerState& peer,
                                               std::string_view request) const {
  HMC_ASSIGN(const auto wanted, AtomicRequest::decode(request));
  HMC_ASSIGN(const auto memory, registered(peer, wanted.region, wanted.number));
  return wanted.serve(memory->region(), memory->access());
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
