#include "node/node_impl.h"

#include <strings.h>

#include <algorithm>

#include "base/codec.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/log.h"
#include "base/random.h"
#include "base/tls_options.h"
#include "control/security.h"

namespace hmc {

namespace {

// Unread notes of peers that are gone.
constexpr size_t kMostNotesLeft = size_t{64} << 20;

TraceHook traceFor(const NodeOptions& options) {
  if (options.trace) return options.trace;
  return valueOf(variable::kTrace) == "stderr" ? traceToStderr() : TraceHook{};
}

}  // namespace

Result<std::shared_ptr<NodeImpl>> NodeImpl::create(const NodeOptions& options,
                                                   const TransportMaker& make,
                                                   std::shared_ptr<NodeExtension> extension) {
  HMC_ASSIGN(auto fds, FdExchange::create());
  HMC_ASSIGN(const TlsOptions tls, withEnvironment(options.tls));
  HMC_TRY(checkValue(variable::kIntegrity));
  const bool integrity = options.integrity.value_or(valueOf(variable::kIntegrity) == "true");
  HMC_ASSIGN(auto transports, make(options.transports, {*fds, options.channels, tls, integrity}));
  std::string name = options.name.empty() ? "node-" + hex(randomBytes(4)) : options.name;
  std::shared_ptr<NodeImpl> node = ownedHere(
      new NodeImpl(name, std::move(fds), std::move(transports), options, std::move(extension)));
  HMC_ASSIGN(node->measurements_, Measurements::fromEnvironment());
  control::ControlOptions control;
  control.name = name;
  control.secret = options.secret;
  control.insecure = options.insecure;
  control.heartbeat = options.heartbeat;
  control.lease = options.lease;
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
      lease_(options.lease),
      missing_(std::move(transports.missing)),
      memory_(name_) {
  const TraceHook trace = traceFor(options);
  for (auto& transport : transports.ready)
    engines_.push_back(std::make_unique<Engine>(std::move(transport), trace));
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
                                                              std::shared_ptr<const void> owner) {
  HMC_TRY(checkUsable());
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
      LocalMemory::create(shared_from_this(), name, region, access, owned, std::move(owner));
  HMC_TRY(checkUsable());
  if (memory->exported()) HMC_TRY(memory_.add(memory->exported()));
  return memory;
}

// In the child of a fork there is nobody to ask, and the memory is the child's own.
Status NodeImpl::revoke(const std::shared_ptr<ExportedMemory>& memory,
                        std::chrono::nanoseconds timeout) {
  return fork_.inChild() ? Status() : memory_.revoke(memory, timeout);
}

Result<std::shared_ptr<const ExportedMemory>> NodeImpl::registered(const std::string& name,
                                                                   uint64_t number) const {
  HMC_ASSIGN(auto memory, memory_.find(name, number));
  return memory->use();
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

Status NodeImpl::nothingCame(const char* what) const {
  HMC_TRY(checkUsable());
  return error(Code::deadlineExceeded, "no {} in time", what);
}

Result<NodeImpl::NoteFrom> NodeImpl::nextNote(Deadline deadline) {
  if (fork_.inChild()) return ForkGuard::refusal();
  if (auto note = notes_.pop(deadline)) {
    note->peer->channel().noteTaken(note->bytes.size());
    return *std::move(note);
  }
  return nothingCame("notification arrived");
}

void NodeImpl::watchPeers() {
  std::lock_guard lock(mutex_);
  if (peersWatched_) return;
  peersWatched_ = true;
  for (const auto& peer : peers_) peerEvents_.push({peer, Status()});
}

Result<NodeImpl::PeerNews> NodeImpl::nextPeerEvent(Deadline deadline) {
  if (fork_.inChild()) return ForkGuard::refusal();
  watchPeers();
  if (auto event = peerEvents_.pop(deadline)) return *std::move(event);
  return nothingCame("peer came or went");
}

Result<int> NodeImpl::noteFd() {
  if (fork_.inChild()) return ForkGuard::refusal();
  return notes_.fd();
}

Result<int> NodeImpl::peerEventFd() {
  if (fork_.inChild()) return ForkGuard::refusal();
  watchPeers();
  return peerEvents_.fd();
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
  dropOldNotes();
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
  reply(answerNow(peer, method, request));
}

Result<std::string> NodeImpl::answerNow(const std::shared_ptr<PeerState>& peer, uint16_t method,
                                        std::string_view request) {
  if (method == kProbe) return describeSelf();
  if (!peer) return error(Code::disconnected, "{} no longer knows the peer that asks", name_);
  if (method == kOpenRegion) return describeRegion(peer, request);
  if (method == kOpenLink) return peer->acceptLink(request);
  if (method == kDropLink) return peer->dropLink(request);
  if (method == kRevokeRegion) return peer->releaseRegion(request);
  if (method == kRegionReleased) return hearRelease(*peer, request);
  if (method == kRegionReady) return peer->hearRegionReady();
  if (method == kOpenStage) return peer->offerStage(request);
  if (!extension_) return error(Code::unsupported, "{} does not know request {}", name_, method);
  auto answer = extension_->answer(*peer, method, request);
  std::lock_guard lock(mutex_);
  changed_.notify_all();
  return answer;
}

void NodeImpl::note(const std::shared_ptr<control::Channel>& channel, std::string payload) {
  auto peer = find(channel.get());
  if (!peer) return;
  notes_.push({std::move(peer), std::move(payload)});
}

// Peers may come and go for ever, and each may leave notes.
void NodeImpl::dropOldNotes() {
  size_t bytes = 0;
  auto hasLeft = [](const NoteFrom& note) { return !note.peer->channel().status().ok(); };
  notes_.look([&](const NoteFrom& note) { bytes += hasLeft(note) ? note.bytes.size() + 64 : 0; });
  if (bytes <= kMostNotesLeft) return;
  logWarn("{} bytes of notes of peers that left were not read: the oldest are dropped", bytes);
  notes_.erase([&](const NoteFrom& note) {
    if (bytes <= kMostNotesLeft || !hasLeft(note)) return false;
    bytes -= note.bytes.size() + 64;
    return true;
  });
}

std::shared_ptr<PeerState> NodeImpl::find(const control::Channel* channel) const {
  std::lock_guard lock(mutex_);
  for (const auto& peer : peers_) {
    if (&peer->channel() == channel) return peer;
  }
  return nullptr;
}

Result<std::string> NodeImpl::describeRegion(const std::shared_ptr<PeerState>& peer,
                                             std::string_view request) {
  Reader in(request);
  std::string wanted = in.string();
  std::vector<std::string> transports;
  for (uint32_t left = in.u32(); left > 0 && !in.failed(); --left)
    transports.push_back(in.string());
  HMC_TRY(in.finish("the request for a region"));
  for (size_t i = 0; i < engines_.size(); ++i) {
    if (!serves(i, *peer)) std::erase(transports, factsOf(i).name);
  }
  HMC_ASSIGN(auto memory, memory_.find(wanted, peer->channel().proven()));
  return memory->describe(peer, transports);
}

Result<std::string> NodeImpl::hearRelease(const PeerState& peer, std::string_view request) {
  Reader in(request);
  const uint64_t number = in.u64();
  HMC_TRY(in.finish("the release of a region"));
  memory_.released(peer, number);
  return std::string();
}

}  // namespace hmc
