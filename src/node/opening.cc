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

Opening::Opening(std::shared_ptr<NodeImpl> node, std::shared_ptr<PeerState> peer,
                 std::string region, Deadline deadline)
    : node_(std::move(node)),
      peer_(std::move(peer)),
      region_(std::move(region)),
      deadline_(deadline) {}

Result<RegionDescription> Opening::ask(const std::vector<size_t>& transports) const {
  Writer request;
  request.string(region_).u32(static_cast<uint32_t>(transports.size()));
  for (size_t i : transports) request.string(node_->factsOf(i).name);
  HMC_ASSIGN(std::string reply, peer_->channel().call(kOpenRegion, request.bytes(), deadline_));
  return RegionDescription::decode(reply);
}

Result<std::shared_ptr<RemoteMapping>> Opening::over(const std::vector<size_t>& transports) {
  HMC_ASSIGN(const auto description, ask(transports));
  std::vector<Candidate> candidates;
  for (size_t i : transports) {
    const auto* offer = description.offerFor(node_->factsOf(i).name);
    if (offer != nullptr) {
      const bool staged = offer->why.code() == Code::unsupported && !description.device.isHost();
      candidates.push_back({i, offer, staged, nullptr});
    } else {
      giveUp(i, error(Code::unsupported, "the peer says nothing about it"));
    }
  }
  const PathChooser chooser(node_->figures(), peer_->away(), description.device.kind);
  const auto worth = settle(chooser, candidates, description);
  std::vector<Candidate> chosen;
  chosen.reserve(worth.size());
  for (size_t i : worth) chosen.push_back(std::move(candidates[i]));
  if (chosen.empty()) return std::shared_ptr<RemoteMapping>();
  return finish(chooser, std::move(chosen), description);
}

// A path shows how fast it can be only when it is open, so each one that opens or fails to is a
// reason to look again. Every round settles one candidate.
std::vector<size_t> Opening::settle(const PathChooser& chooser, std::vector<Candidate>& candidates,
                                    const RegionDescription& description) {
  while (!candidates.empty()) {
    std::vector<PathOption> options;
    options.reserve(candidates.size());
    for (const auto& candidate : candidates) options.push_back(optionOf(candidate));
    auto worth = chooser.worthHaving(options);
    auto next = std::find_if(worth.begin(), worth.end(),
                             [&](size_t one) { return candidates[one].path == nullptr; });
    if (next == worth.end()) return worth;
    Candidate& candidate = candidates[*next];
    auto opened = open(candidate, description);
    if (opened.ok()) {
      candidate.path = *std::move(opened);
    } else {
      giveUp(candidate.transport, opened.status());
      candidates.erase(candidates.begin() + static_cast<ptrdiff_t>(*next));
    }
  }
  return {};
}

void Opening::giveUp(size_t transport, const Status& why) {
  const std::string& name = node_->factsOf(transport).name;
  reasons_ += fmt::format("{}{}: {}", reasons_.empty() ? "" : "; ", name, why.message());
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
  if (!why.ok() && !candidate.staged) return why;
  Engine& engine = *node_->engines()[candidate.transport];
  HMC_ASSIGN(auto link, peer_->link(candidate.transport, deadline_));
  if (!candidate.staged) {
    auto memory = link->importKey(candidate.offer->key, deadline_, nullptr);
    if (memory.ok()) {
      return std::make_unique<OpenPath>(candidate.transport, engine, std::move(link),
                                        *std::move(memory));
    }
    why = memory.status();
    if (description.device.isHost()) return why;
    candidate.staged = true;
  }
  auto stage = peer_->stage(candidate.transport, *link,
                            {candidate.offer->transport, region_, description.number}, deadline_);
  if (!stage.ok()) return stage.status().within(why.message());
  return std::make_unique<OpenPath>(candidate.transport, engine, std::move(link), *std::move(stage),
                                    description, why.message());
}

std::shared_ptr<RemoteMapping> Opening::finish(const PathChooser& chooser,
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
  auto mapping = std::make_shared<RemoteMapping>(node_, peer_, std::move(paths),
                                                 chooser.quickest(options), description.device);
  peer_->paths().tellIfSlow(peer_->title(), description.device.kind, mapping->path(), passed_,
                            slower);
  return mapping;
}

}  // namespace hmc
