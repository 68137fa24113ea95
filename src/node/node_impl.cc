#include "node/node_impl.h"

#include <strings.h>

#include <algorithm>

#include "base/codec.h"
#include "base/error.h"
#include "base/log.h"
#include "base/own_address.h"
#include "base/random.h"
#include "base/tls_options.h"
#include "control/security.h"
#include "control/socket.h"
#include "node/node_defaults.h"

namespace hmc {

namespace {

constexpr std::chrono::milliseconds kRedial{20};

Status checkAdvertised(const std::string& host) {
  if (host.empty()) return Status();
  control::Address address;
  address.host = host;
  return control::parseAddress(address.toString())
      .status()
      .within("advertise is \"" + host + "\", which has to be a host");
}

}  // namespace

Result<std::shared_ptr<NodeImpl>> NodeImpl::create(const NodeOptions& given,
                                                   const TransportMaker& make,
                                                   std::shared_ptr<NodeExtension> extension) {
  HMC_ASSIGN(const NodeOptions options, withEnvironment(given));
  HMC_ASSIGN(auto fds, FdExchange::create());
  HMC_ASSIGN(const TlsOptions tls, withEnvironment(options.tls));
  HMC_TRY(checkAdvertised(options.advertise));
  HMC_ASSIGN(const PortRange ports, portRangeFrom(options.dataPorts));
  HMC_ASSIGN(auto transports, make(options.transports, {*fds, options.channels, tls,
                                                        options.integrity.value_or(false), ports}));
  std::string name = options.name.empty() ? "node-" + hex(randomBytes(4)) : options.name;
  std::shared_ptr<NodeImpl> node = ownedHere(
      new NodeImpl(name, std::move(fds), std::move(transports), options, std::move(extension)));
  HMC_ASSIGN(node->measurements_, Measurements::fromEnvironment());
  control::ControlOptions control;
  control.name = name;
  control.secret = options.secret;
  control.insecure = options.insecure;
  control.heartbeat = options.heartbeat;
  control.lease = leaseOf(options);
  const auto& asked = options.transports;
  control.ring = asked.empty() || std::find(asked.begin(), asked.end(), "ipc") != asked.end();
  HMC_TRY(control::addDefaults(control, tls));
  HMC_ASSIGN(node->control_, control::Control::create(control, *node->fds_, *node));
  node->control_->setAttributes(node->attributes({}).encode());
  return node;
}

NodeImpl::NodeImpl(std::string name, std::unique_ptr<FdExchange> fds, TransportSet transports,
                   const NodeOptions& options, std::shared_ptr<NodeExtension> extension)
    : name_(std::move(name)),
      fds_(std::move(fds)),
      extension_(std::move(extension)),
      named_(!options.transports.empty()),
      lease_(leaseOf(options)),
      advertise_(options.advertise),
      missing_(std::move(transports.missing)),
      grantKey_(randomBytes(32)),
      grantsOnly_(options.grantsOnly),
      memory_(name_),
      granted_(lease_) {
  for (auto& transport : transports.ready)
    engines_.push_back(std::make_unique<Engine>(std::move(transport), options.trace));
}

NodeImpl::~NodeImpl() {
  close();
  control_.reset();
  peers_.clear();
}

Status NodeImpl::checkUsable() const {
  if (fork_.inChild()) return ForkGuard::refusal();
  std::lock_guard lock(mutex_);
  return closed_ ? error(Code::disconnected, "the Node {} was closed", name_) : Status();
}

std::vector<TransportCounts> NodeImpl::counters() const {
  std::vector<TransportCounts> all;
  for (const auto& engine : engines_) {
    const TransportTotals totals = engine->transport().counters().totals();
    all.push_back({engine->transport().facts().name, totals.operations, totals.bytes,
                   totals.retries, totals.stalls, totals.altered});
  }
  return all;
}

Attributes NodeImpl::attributes(std::optional<uint32_t> rank) const {
  Attributes mine;
  for (const auto& engine : engines_) {
    mine.transports.push_back(
        {engine->transport().facts().name, engine->transport().facts().domain});
  }
  mine.rank = rank;
  std::lock_guard lock(mutex_);
  for (const auto& [address, listener] : listeners_) mine.listeners.push_back(listener);
  return mine;
}

Result<std::string> NodeImpl::listen(const std::string& address, const std::string& label) {
  HMC_TRY(checkUsable());
  HMC_ASSIGN(std::string bound, control_->listen(address));
  size_t colon = bound.rfind(':');
  bool tcp = bound.rfind("tcp://", 0) == 0;
  int port = tcp ? std::atoi(bound.c_str() + colon + 1) : 0;
  {
    std::lock_guard lock(mutex_);
    listeners_[bound] = {label, static_cast<uint16_t>(port)};
  }
  control_->setAttributes(attributes({}).encode());
  return bound;
}

std::string NodeImpl::advertised(const std::string& bound) const {
  auto address = control::parseAddress(bound);
  if (!address.ok() || address->isUnix) return bound;
  const bool all4 = address->host == "0.0.0.0";
  const bool all6 = address->host == "::";
  if (!advertise_.empty()) {
    address->host = advertise_;
  } else if (all4 || all6) {
    // Of networks for documentation: nobody is there, but it is where the default route leads.
    auto own = ownAddressTowards(all4 ? "192.0.2.1" : "2001:db8::1");
    address->host = own.ok() ? *std::move(own) : all4 ? "127.0.0.1" : "::1";
  }
  return address->toString();
}

bool NodeImpl::serves(size_t transport, const PeerState& peer) const {
  if (!onlyByName(transport) || peer.channel().proven()) return true;
  std::lock_guard lock(mutex_);
  if (openedOver_.count(factsOf(transport).name) > 0) return true;
  return std::any_of(listeners_.begin(), listeners_.end(), [&](const auto& one) {
    return strcasecmp(one.second.label.c_str(), factsOf(transport).name.c_str()) == 0;
  });
}

Status NodeImpl::closeListener(const std::string& address) {
  HMC_TRY(control_->closeListener(address));
  {
    std::lock_guard lock(mutex_);
    listeners_.erase(address);
  }
  control_->setAttributes(attributes({}).encode());
  return Status();
}

Result<std::shared_ptr<LocalMemory>> NodeImpl::registerMemory(const std::string& name,
                                                              const Region& region, Access access,
                                                              bool owned,
                                                              std::shared_ptr<const void> owner,
                                                              const ArrayType& type) {
  HMC_TRY(checkUsable());
  HMC_TRY(checkType(type));
  if (!region.ptr || region.size == 0) {
    return error(Code::invalidArgument,
                 "region \"{}\" is {} bytes at {}: memory to register needs both", name,
                 region.size, region.ptr);
  }
  if (!fits(reinterpret_cast<uintptr_t>(region.ptr), region.size, UINTPTR_MAX)) {
    return error(Code::invalidArgument,
                 "region \"{}\" of {} bytes at {} would pass the end of all addresses", name,
                 region.size, region.ptr);
  }
  auto memory =
      LocalMemory::create(shared_from_this(), name, region, access, owned, std::move(owner), type);
  HMC_TRY(checkUsable());
  if (memory->exported()) HMC_TRY(memory_.add(memory->exported()));
  return memory;
}

Result<std::shared_ptr<PeerState>> NodeImpl::connect(const std::string& address,
                                                     std::optional<uint32_t> rank,
                                                     Deadline deadline) {
  HMC_TRY(checkUsable());
  HMC_ASSIGN(auto channel, control_->connect(address, attributes(rank).encode(), deadline));
  auto peer = find(channel.get());
  if (!peer) return channel->status().within("the connection to " + address + " ended at once");
  return peer;
}

Result<std::shared_ptr<PeerState>> NodeImpl::connectPatiently(const std::string& address,
                                                              std::optional<uint32_t> rank,
                                                              Deadline deadline) {
  for (;;) {
    auto peer = connect(address, rank, deadline);
    const Code code = peer.status().code();
    const bool later =
        code == Code::disconnected || code == Code::notFound || code == Code::exhausted;
    if (!later || deadline.passed()) return peer;
    // Nothing tells us when a listener appears or has a place: look again in a moment.
    std::unique_lock lock(mutex_);
    if (changed_.wait_until(lock, earlier(deadline, Deadline(kRedial)).at(),
                            [this] { return closed_; })) {
      return error(Code::disconnected, "the Node {} was closed", name_);
    }
  }
}

Result<std::shared_ptr<PeerState>> NodeImpl::waitForPeer(const PeerTest& wanted,
                                                         const std::string& what,
                                                         Deadline deadline) {
  HMC_TRY(checkUsable());
  std::shared_ptr<PeerState> found;
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline.at(), [&] {
    for (auto peer = peers_.rbegin(); peer != peers_.rend() && !found; ++peer) {
      if (wanted(**peer)) found = *peer;
    }
    return found || closed_;
  });
  if (found) return found;
  if (closed_) return error(Code::disconnected, "the Node {} was closed", name_);
  return error(Code::notFound, "{} is not connected", what);
}

std::vector<std::shared_ptr<PeerState>> NodeImpl::peers() const {
  if (fork_.inChild()) return {};
  std::lock_guard lock(mutex_);
  return peers_;
}

void NodeImpl::close() {
  if (fork_.inChild()) return;
  std::vector<std::shared_ptr<PeerState>> all;
  std::vector<std::string> listeners;
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = true;
    all = peers_;
    for (const auto& [address, listener] : listeners_) listeners.push_back(address);
    changed_.notify_all();
  }
  Status why = error(Code::disconnected, "the Node {} was closed", name_);
  for (const auto& address : listeners) control_->closeListener(address);
  for (const auto& peer : all) peer->close(why);
  streamHolds_.clear();
  notes_.close();
  calls_.close();
  peerEvents_.close();
}

Status NodeImpl::joined(const std::shared_ptr<control::Channel>& channel) {
  HMC_ASSIGN(auto theirs, Attributes::decode(channel->peer().attributes));
  auto peer = ownedHere(new PeerState(*this, channel, std::move(theirs)));
  std::lock_guard lock(mutex_);
  if (closed_) return error(Code::disconnected, "the Node {} was closed", name_);
  if (peersWatched_) peerEvents_.push({peer, Status()});
  peers_.push_back(std::move(peer));
  changed_.notify_all();
  return Status();
}

Status NodeImpl::joinedAgain(const std::shared_ptr<control::Channel>& channel,
                             const std::string& attributes) {
  HMC_ASSIGN(auto theirs, Attributes::decode(attributes));
  if (auto peer = find(channel.get())) peer->setAttributes(std::move(theirs));
  std::lock_guard lock(mutex_);
  changed_.notify_all();
  return Status();
}

void NodeImpl::left(const std::shared_ptr<control::Channel>& channel, const Status& why) {
  auto peer = find(channel.get());
  if (!peer) return;
  peer->end(why);
  if (extension_) extension_->left(peer);
  memory_.left(*peer);
  granted_.left(*peer);
  dropOldNotes();
  calls_.erase([&](const auto& call) { return call->peer() == peer; });
  std::lock_guard lock(mutex_);
  peers_.erase(std::remove(peers_.begin(), peers_.end(), peer), peers_.end());
  // What nobody reads stays bounded: by the peers that are connected, and those announced.
  const bool announced =
      !peerEvents_.erase([&](const PeerNews& news) { return news.peer == peer; });
  if (peersWatched_ && announced) peerEvents_.push({peer, why});
  changed_.notify_all();
}

void NodeImpl::answer(const std::shared_ptr<control::Channel>& channel, uint16_t method,
                      std::string_view request, control::Channel::Answered reply) {
  auto peer = find(channel.get());
  if (peer && method == kCopySlot) return peer->copySlot(request, std::move(reply));
  if (peer && method == kUserCall) return takeCall(peer, request, std::move(reply));
  reply(answerNow(peer, method, request));
}

Result<std::string> NodeImpl::answerNow(const std::shared_ptr<PeerState>& peer, uint16_t method,
                                        std::string_view request) {
  if (method == kProbe) return describeSelf();
  if (!peer) return error(Code::disconnected, "{} no longer knows the peer that asks", name_);
  if (method == kOpenRegion) return describeRegion(peer, request);
  if (method == kListRegions) return listRegions(*peer, request);
  if (method == kOpenGrant) return describeGranted(peer, request);
  if (method == kCloseGrant) return closeGranted(*peer, request);
  if (method == kOpenLink) return peer->acceptLink(request);
  if (method == kDropLink) return peer->dropLink(request);
  if (method == kRevokeRegion) return peer->releaseRegion(request);
  if (method == kRegionReleased) return hearRelease(*peer, request);
  if (method == kRegionReady) return peer->hearRegionReady();
  if (method == kOpenStage) return peer->offerStage(request);
  if (method == kChangeAtomically) return changeAtomically(*peer, request);
  if (!extension_) return error(Code::unsupported, "{} does not know request {}", name_, method);
  auto answer = extension_->answer(*peer, method, request);
  std::lock_guard lock(mutex_);
  changed_.notify_all();
  return answer;
}

std::shared_ptr<PeerState> NodeImpl::find(const control::Channel* channel) const {
  std::lock_guard lock(mutex_);
  for (const auto& peer : peers_) {
    if (&peer->channel() == channel) return peer;
  }
  return nullptr;
}

}  // namespace hmc
