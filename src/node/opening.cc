#include "node/opening.h"

#include <algorithm>

#include "base/codec.h"
#include "base/error.h"
#include "node/node_impl.h"

namespace hmc {

namespace {

// The path that is open, or before it is, the fastest that there is.
const Transport::Path* pathOf(const Transport::Facts& facts, const OpenPath* open) {
  for (const auto& path : facts.paths) {
    if (open == nullptr || path.name == open->reached().path()) return &path;
  }
  return nullptr;
}

}  // namespace

GrantedOpening::~GrantedOpening() {
  peer->channel().ask(kCloseGrant, Writer().u64(number).bytes(), [](const auto&) {});
}

Opening::Opening(std::shared_ptr<NodeImpl> node, std::shared_ptr<PeerState> peer,
                 const WantedRegion& region, Deadline deadline, void* place)
    : node_(std::move(node)),
      peer_(std::move(peer)),
      pending_(peer_->regions()),
      region_(region.name),
      granted_(region.grant.empty() ? nullptr
                                    : std::make_unique<GrantedOpening>(peer_, region.grant)),
      deadline_(deadline),
      place_(place) {}

PathChooser Opening::chooserFor(DeviceKind remote) const {
  return PathChooser(node_->measurements(), peer_->away(), remote);
}

std::vector<size_t> Opening::worthHaving(const PathChooser& chooser,
                                         const std::vector<Candidate>& candidates) const {
  std::vector<PathOption> options;
  options.reserve(candidates.size());
  for (const auto& candidate : candidates) options.push_back(optionOf(candidate));
  return chooser.worthHaving(options);
}

std::string Opening::request(const std::vector<Candidate>& candidates,
                             const std::vector<size_t>& about) const {
  Writer out;
  granted_ ? out.string(granted_->grant).u64(granted_->number) : out.string(region_);
  out.u32(static_cast<uint32_t>(about.size()));
  for (size_t i : about) out.string(node_->factsOf(candidates[i].transport).name);
  return out.take();
}

Result<RegionDescription> Opening::ask(std::vector<Candidate>& candidates,
                                       const std::vector<size_t>& about) const {
  const std::string request = this->request(candidates, about);
  const uint16_t method = granted_ ? kOpenGrant : kOpenRegion;
  std::string reply;
  while (reply.empty()) {
    const uint64_t seen = peer_->regionsReady();
    HMC_ASSIGN(reply, peer_->channel().call(method, request, deadline_));
    if (reply.empty()) HMC_TRY(peer_->awaitRegion(region_, seen, deadline_));
  }
  HMC_ASSIGN(auto description, RegionDescription::decode(reply));
  for (size_t i : about) {
    Candidate& candidate = candidates[i];
    const std::string& name = node_->factsOf(candidate.transport).name;
    candidate.offer = {name, "", error(Code::notFound, "the peer says nothing about it")};
    for (const auto& offer : description.offers) {
      if (offer.transport == name) candidate.offer = offer;
    }
    candidate.staged =
        candidate.offer->why.code() == Code::unsupported && !description.device.isHost();
  }
  return description;
}

// The peer registers its memory with a transport when it is first asked for a key, which may cost a
// lot. So it is asked about those that we would take if all of them worked, in one go, and about
// others when it turns out that they do not.
Result<std::shared_ptr<RemoteMapping>> Opening::over(const std::vector<size_t>& transports) {
  std::vector<Candidate> candidates;
  candidates.reserve(transports.size());
  for (size_t i : transports) candidates.push_back({i, {}, false, nullptr});
  HMC_ASSIGN(const auto description,
             ask(candidates, worthHaving(chooserFor(DeviceKind::cpu), candidates)));
  const PathChooser chooser = chooserFor(description.device.kind);
  HMC_ASSIGN(const auto worth, settle(chooser, candidates, description));
  std::vector<Candidate> chosen;
  chosen.reserve(worth.size());
  for (size_t i : worth) chosen.push_back(std::move(candidates[i]));
  if (chosen.empty()) return std::shared_ptr<RemoteMapping>();
  return finish(chooser, std::move(chosen), description);
}

// A path shows how fast it can be only when it is open, so each one that opens or fails to is a
// reason to look again. Every round settles one candidate, or learns what its transport offers.
Result<std::vector<size_t>> Opening::settle(const PathChooser& chooser,
                                            std::vector<Candidate>& candidates,
                                            const RegionDescription& description) {
  while (!candidates.empty()) {
    auto worth = worthHaving(chooser, candidates);
    auto next = std::find_if(worth.begin(), worth.end(),
                             [&](size_t one) { return candidates[one].path == nullptr; });
    if (next == worth.end()) return worth;
    Candidate& candidate = candidates[*next];
    if (!candidate.offer) {
      HMC_ASSIGN(const auto now, ask(candidates, {*next}));
      if (now.number == description.number) continue;
      return error(Code::notFound, "{} replaced the region \"{}\" while it was opened: try again",
                   peer_->title(), region_);
    }
    auto opened = open(candidate, description);
    if (opened.ok()) {
      candidate.path = *std::move(opened);
    } else {
      giveUp(candidate.transport, opened.status());
      candidates.erase(candidates.begin() + static_cast<ptrdiff_t>(*next));
    }
  }
  return std::vector<size_t>();
}

void Opening::addReason(const std::string& transport, const std::string& why) {
  reasons_ += fmt::format("{}{}: {}", reasons_.empty() ? "" : "; ", transport, why);
}

void Opening::giveUp(size_t transport, const Status& why) {
  const std::string& name = node_->factsOf(transport).name;
  addReason(name, why.message());
  passed_.addBroken(name, why.message());
  peer_->paths().failed(name, why.message());
}

PathOption Opening::optionOf(const Candidate& candidate) const {
  return {node_->engines()[candidate.transport].get(),
          pathOf(node_->factsOf(candidate.transport), candidate.path.get()), candidate.staged};
}

Result<std::unique_ptr<OpenPath>> Opening::open(Candidate& candidate,
                                                const RegionDescription& description) const {
  Status why = candidate.offer->why;
  if (!why.ok() && (!candidate.staged || place_)) return why;
  Engine& engine = *node_->engines()[candidate.transport];
  HMC_ASSIGN(auto link, peer_->link(candidate.transport, deadline_));
  if (!candidate.staged) {
    auto memory = link->importKey(candidate.offer->key, deadline_, place_);
    if (memory.ok()) {
      return std::make_unique<OpenPath>(candidate.transport, engine, std::move(link),
                                        *std::move(memory));
    }
    why = memory.status();
    if (description.device.isHost() || place_) return why;
    candidate.staged = true;
  }
  auto stage = peer_->stage(candidate.transport, *link,
                            {candidate.offer->transport, region_, description.number}, deadline_);
  if (!stage.ok()) return stage.status().within(why.message());
  return std::make_unique<OpenPath>(candidate.transport, engine, std::move(link), *std::move(stage),
                                    description, why.message());
}

Result<std::shared_ptr<RemoteMapping>> Opening::finish(const PathChooser& chooser,
                                                       std::vector<Candidate> candidates,
                                                       const RegionDescription& description) {
  std::vector<PathOption> options;
  std::vector<std::unique_ptr<OpenPath>> paths;
  for (auto& candidate : candidates) {
    options.push_back(optionOf(candidate));
    const OpenPath& path = *candidate.path;
    peer_->paths().used(path.name(), path.reached().path());
    if (path.far) peer_->paths().staged(path.name(), path.farBecause);
    paths.push_back(std::move(candidate.path));
  }
  // A transport that never touches such memory has no faster path that could be fixed.
  const OpenPath& first = *paths.front();
  const bool best = first.far && !first.engine.touches(description.device.kind);
  const std::string slower = best ? "" : first.slowerBecause();
  auto mapping =
      ownedHere(new RemoteMapping(node_, peer_, region_, description.number, std::move(granted_),
                                  std::move(paths), chooser.quickest(options), description.device));
  HMC_TRY(peer_->regions().add(*mapping, description.number));
  peer_->paths().tellIfSlow(peer_->title(), description.device.kind, mapping->path(), passed_,
                            slower);
  return mapping;
}

}  // namespace hmc
