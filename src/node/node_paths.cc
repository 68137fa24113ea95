#include <algorithm>

#include "base/codec.h"
#include "base/error.h"
#include "hmc/version.h"
#include "memory/backends.h"
#include "node/figures.h"
#include "node/node_impl.h"

// How a peer is reached: opening its regions over the best path, and saying which that is and why.

namespace hmc {

namespace {

using WallClock = std::chrono::system_clock;

// What memory that is not the host's typically adds to a put: the runtime's call for a copy, and
// where the transport cannot touch it, a second copy through the host.
constexpr double kDeviceCopyNs = 10000;
constexpr double kStagingBytesPerNs = 10;
// The quickest of a few says most about the clock.
constexpr int kProbes = 5;

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The fastest way that was taken, or before any was, the fastest that there is.
const Transport::Way* wayTaken(const Transport::Facts& facts,
                               const std::vector<std::string>& taken) {
  for (const auto& way : facts.ways) {
    if (taken.empty() || contains(taken, way.how)) return &way;
  }
  return nullptr;
}

double predict(const Transport::Way& way, bool host, bool staged, size_t size) {
  const auto bytes = static_cast<double>(size);
  double ns = way.latencyNs + bytes / way.bytesPerNs;
  if (!host) ns += kDeviceCopyNs;
  if (staged) ns += bytes / kStagingBytesPerNs;
  return ns;
}

std::optional<double> measured(const Figures& figures, const Transport::Facts& facts,
                               const Transport::Way* way, DeviceKind kind, size_t size) {
  if (way == nullptr) return figures.find(facts.name, kind, "put", size);
  auto exact = figures.find(facts.name + "/" + way->how, kind, "put", size);
  if (exact || way != &facts.ways.front()) return exact;
  return figures.find(facts.name, kind, "put", size);
}

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

Result<std::shared_ptr<RemoteMapping>> NodeImpl::open(const std::shared_ptr<PeerState>& peer,
                                                      const std::string& region,
                                                      const std::vector<std::string>& transports,
                                                      Deadline deadline) {
  HMC_TRY(checkUsable());
  Writer request;
  request.string(region);
  HMC_ASSIGN(std::string reply, peer->channel().call(kOpenRegion, request.bytes(), deadline));
  HMC_ASSIGN(auto description, RegionDescription::decode(reply));
  PassedOver passed = leftOut(*peer);
  std::string reasons;
  auto choices = peer->choices();
  for (size_t i = 0; i < choices.size(); ++i) {
    const auto& choice = choices[i];
    const std::string* key = description.keyFor(choice.name);
    if (!transports.empty() && !contains(transports, choice.name)) {
      if (choice.usable && key) passed.addUnasked(choice.name);
      continue;
    }
    Status why = choice.usable ? Status() : Status(Code::unsupported, choice.reason);
    if (why.ok() && !key)
      why = error(Code::unsupported, "the peer did not register that region for it");
    if (why.ok()) {
      auto mapping = openOver(peer, i, *key, description.device, passed, deadline);
      if (mapping.ok()) return mapping;
      why = mapping.status();
      passed.addBroken(choice.name, why.message());
    }
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", choice.name, why.message());
  }
  HMC_TRY(peer->channel().status());
  return error(Code::unsupported, "no transport reaches region \"{}\" of {} ({})", region,
               peer->title(), reasons);
}

Result<std::shared_ptr<RemoteMapping>> NodeImpl::openOver(const std::shared_ptr<PeerState>& peer,
                                                          size_t transport, const std::string& key,
                                                          Device device, const PassedOver& passed,
                                                          Deadline deadline) {
  HMC_ASSIGN(auto link, peer->link(transport, deadline));
  HMC_ASSIGN(auto memory, link->importKey(key, deadline));
  const std::string how = memory->how();
  const std::string slower = memory->slowerBecause();
  auto mapping = std::make_shared<RemoteMapping>(shared_from_this(), peer, transport,
                                                 std::move(link), std::move(memory), device);
  peer->paths().used(mapping->transport(), how);
  peer->paths().tellIfSlow(peer->title(), device.kind, mapping->path(), passed, slower);
  return mapping;
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

std::vector<PathReport> NodeImpl::explain(const PeerState& peer) const {
  std::vector<PathReport> report;
  bool preferred = true;
  for (const auto& choice : peer.choices()) {
    report.push_back({choice.name, choice.usable, choice.usable && preferred, choice.reason,
                      listed(peer.paths().waysOf(choice.name))});
    if (choice.usable) preferred = false;
  }
  for (const auto& missing : missing_)
    report.push_back({missing.name, false, false, missing.why.message()});
  return report;
}

std::vector<PathReport> NodeImpl::explain(const PeerState& peer, Device local, size_t size) const {
  auto report = explain(peer);
  const Status there = findBackend(local).status();
  const Figures figures = Figures::read(figuresPath());
  for (size_t i = 0; i < engines_.size(); ++i) {
    PathReport& path = report[i];  // engines come first, in their order
    if (!path.usable) continue;
    if (!there.ok()) {
      path.usable = path.preferred = false;
      path.reason = there.message();
      continue;
    }
    const auto& facts = engines_[i]->transport().facts();
    const bool staged = !engines_[i]->touches(local.kind);
    if (staged) path.reason += fmt::format("; {} memory passes through the host", local.toString());
    const auto* way = wayTaken(facts, peer.paths().waysOf(facts.name));
    if (way) path.predictedNs = predict(*way, local.isHost(), staged, size);
    path.measuredNs = measured(figures, facts, way, local.kind, size);
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
    std::string version = in.string();
    const std::chrono::nanoseconds theirs(static_cast<int64_t>(in.u64()));
    HMC_TRY(in.finish("the peer's facts").within(peer.title()));
    if (took >= facts.roundTrip) continue;
    facts = {std::move(version), theirs - (asked.time_since_epoch() + took / 2), took};
  }
  return facts;
}

std::string NodeImpl::describeSelf() const {
  const auto now = std::chrono::nanoseconds(WallClock::now().time_since_epoch());
  return Writer().string(kVersion).u64(static_cast<uint64_t>(now.count())).take();
}

}  // namespace hmc
