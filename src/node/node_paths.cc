#include <algorithm>

#include <fmt/ranges.h>

#include "base/codec.h"
#include "base/error.h"
#include "base/text.h"
#include "hmc/version.h"
#include "memory/backends.h"
#include "node/node_impl.h"
#include "node/opening.h"
#include "node/path_chooser.h"

// How a peer is reached: opening its regions over the best path, and saying which that is and why.

namespace hmc {

namespace {

using WallClock = std::chrono::system_clock;

// The quickest of a few says most about the clock.
constexpr int kProbes = 5;

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The fastest path that was taken, or before any was, the fastest that there is.
const Transport::Path* pathTaken(const Transport::Facts& facts,
                                 const std::vector<std::string>& taken) {
  for (const auto& path : facts.paths) {
    if (taken.empty() || contains(taken, path.name)) return &path;
  }
  return nullptr;
}

}  // namespace

NodeImpl::Rounds NodeImpl::rounds(const std::vector<TransportChoice>& choices,
                                  const std::vector<std::string>& asked) const {
  Rounds rounds;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (!choices[i].usable || (!asked.empty() && !contains(asked, choices[i].name))) continue;
    const bool later = asked.empty() && onlyByName(i);
    (later ? rounds.second : rounds.first).push_back(i);
  }
  return rounds;
}

Result<std::shared_ptr<RemoteMapping>> NodeImpl::open(const std::shared_ptr<PeerState>& peer,
                                                      const WantedRegion& region,
                                                      const std::vector<std::string>& transports,
                                                      Deadline deadline, void* place) {
  HMC_TRY(checkUsable());
  if (!transports.empty()) {
    std::lock_guard lock(mutex_);
    openedOver_.insert(transports.begin(), transports.end());
  }
  const auto choices = peer->choices();
  const Rounds rounds = this->rounds(choices, transports);
  auto asked = [&](const std::string& name) {
    return transports.empty() || contains(transports, name);
  };
  Opening opening(shared_from_this(), peer, region, deadline, place);
  opening.passed() = leftOut(*peer);
  for (size_t i = 0; !rounds.first.empty() && i < rounds.first.front(); ++i) {
    if (!asked(choices[i].name) && choices[i].usable && !onlyByName(i))
      opening.passed().addUnasked(choices[i].name);
  }
  for (const auto* round : {&rounds.first, &rounds.second}) {
    // Also with no transport to ask for: the peer may not have the region.
    if (round->empty() && round == &rounds.second) continue;
    HMC_ASSIGN(auto mapping, opening.over(*round));
    if (mapping) return mapping;
  }
  HMC_TRY(peer->channel().status());
  for (const auto& choice : choices) {
    if (asked(choice.name) && !choice.usable) opening.addReason(choice.name, choice.reason);
  }
  for (const auto& missing : missing_) {
    if (asked(missing.name)) opening.addReason(missing.name, missing.why.message());
  }
  const std::string& reasons = opening.reasons();
  return error(Code::unsupported, "no transport reaches region \"{}\" of {} ({})", region.name,
               peer->title(), reasons.empty() ? name_ + " has no transport" : reasons);
}

// What the peer has and we have not, because we were told so.
PassedOver NodeImpl::leftOut(const PeerState& peer) const {
  PassedOver passed;
  for (const auto& offer : peer.attributes().transports) {
    bool ours = std::any_of(engines_.begin(), engines_.end(), [&](const auto& engine) {
      return engine->transport().facts().name == offer.name;
    });
    bool tried = std::any_of(missing_.begin(), missing_.end(),
                             [&](const auto& missing) { return missing.name == offer.name; });
    bool better = engines_.empty() ||
                  isBetterTransport(offer.name, engines_.front()->transport().facts().name);
    if (!ours && !tried && better) passed.addUnasked(offer.name);
  }
  return passed;
}

std::vector<PathReport> NodeImpl::transports() const {
  std::vector<PathReport> report;
  for (const auto& engine : engines_) {
    const auto& facts = engine->transport().facts();
    report.push_back({facts.name, true, report.empty(), "reaches " + facts.domain});
  }
  for (const auto& missing : missing_)
    report.push_back({missing.name, false, false, missing.why.message()});
  return report;
}

std::optional<size_t> NodeImpl::taken(const PeerState& peer, DeviceKind local, size_t size) const {
  const Rounds rounds = this->rounds(peer.choices(), {});
  for (const auto* round : {&rounds.first, &rounds.second}) {
    std::vector<PathOption> options;
    std::vector<size_t> transports;
    for (size_t i : *round) {
      const auto note = peer.paths().of(factsOf(i).name);
      if (!note.failure.empty()) continue;
      transports.push_back(i);
      options.push_back({engines_[i].get(), pathTaken(factsOf(i), note.used), false});
    }
    if (options.empty()) continue;
    const PathChooser chooser(measurements_, peer.away(), DeviceKind::cpu);
    std::vector<PathOption> chosen;
    const auto worth = chooser.worthHaving(options);
    chosen.reserve(worth.size());
    for (size_t one : worth) chosen.push_back(options[one]);
    return transports[worth[chooser.quickest(chosen).of(OpKind::put, local).at(size)]];
  }
  return std::nullopt;
}

std::vector<PathReport> NodeImpl::explain(const PeerState& peer) const {
  std::vector<PathReport> report;
  const auto used = taken(peer, DeviceKind::cpu, 1);
  for (const auto& choice : peer.choices()) {
    const size_t i = report.size();
    const auto note = peer.paths().of(choice.name);
    report.push_back({choice.name, choice.usable, used == i, choice.reason,
                      fmt::format("{}", fmt::join(note.used, ", "))});
    if (!choice.usable) continue;
    if (onlyByName(i)) report.back().reason += "; only when asked for by name";
    if (!note.failure.empty())
      report.back().reason += "; the last region could not be opened over it: " + note.failure;
    if (!note.staged.empty())
      report.back().reason += "; memory of the peer's is staged at the target: " + note.staged;
    if (!note.stagedHere.empty())
      report.back().reason += "; memory of ours passes through the host: " + note.stagedHere;
  }
  for (const auto& missing : missing_)
    report.push_back({missing.name, false, false, missing.why.message()});
  return report;
}

std::vector<PathReport> NodeImpl::explain(const PeerState& peer, Device local, size_t size) const {
  auto report = explain(peer);
  const Status there = findBackend(local).status();
  const auto used = there.ok() ? taken(peer, local.kind, size) : std::nullopt;
  const PathChooser chooser(measurements_, peer.away(), DeviceKind::cpu);
  for (size_t i = 0; i < engines_.size(); ++i) {
    PathReport& path = report[i];  // engines come first, in their order
    if (!path.usable) continue;
    path.preferred = used == i;
    if (!there.ok()) {
      path.usable = path.preferred = false;
      path.reason = there.message();
      continue;
    }
    if (!engines_[i]->touches(local.kind))
      path.reason += fmt::format("; {} memory passes through the host", local.toString());
    const PathOption option{engines_[i].get(),
                            pathTaken(factsOf(i), peer.paths().of(factsOf(i).name).used), false};
    if (option.path) path.predictedNs = chooser.typical(option, local.kind, size);
    const bool covered = chooser.covers(option, OpKind::put, local.kind, size);
    (covered ? path.measuredNs : path.extrapolatedNs) =
        chooser.measured(option, OpKind::put, local.kind, size);
  }
  return report;
}

Result<PeerFacts> NodeImpl::probe(const PeerState& peer, Deadline deadline) const {
  PeerFacts facts;
  facts.roundTrip = std::chrono::nanoseconds::max();
  for (int i = 0; i < kProbes; ++i) {
    const auto asked = WallClock::now();
    const auto began = Deadline::Clock::now();
    auto reply = peer.channel().call(kProbe, "", deadline);
    const auto took = Deadline::Clock::now() - began;
    if (reply.status().code() == Code::unsupported) {
      return error(Code::unsupported, "{} runs an HMC that cannot be asked for its version yet",
                   peer.title());
    }
    HMC_TRY(reply.status());
    Reader in(*reply);
    std::string version = printable(in.string());
    const std::chrono::nanoseconds theirs(static_cast<int64_t>(in.u64()));
    HMC_TRY(in.finish("the peer's facts").within(peer.title()));
    if (took >= facts.roundTrip) continue;
    facts = {std::move(version), theirs - (asked.time_since_epoch() + took / 2), took, peer.away()};
  }
  return facts;
}

std::string NodeImpl::describeSelf() const {
  const auto now = std::chrono::nanoseconds(WallClock::now().time_since_epoch());
  return Writer().string(kVersion).u64(static_cast<uint64_t>(now.count())).take();
}

}  // namespace hmc
