#include "node/node_impl.h"

#include <sys/eventfd.h>

#include <algorithm>

#include "base/codec.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/random.h"

namespace hmc {

namespace {
TraceHook traceFor(const NodeOptions& options) {
  if (options.trace) return options.trace;
  return valueOf(variable::kTrace) == "stderr" ? traceToStderr() : TraceHook{};
}
}  // namespace

Result<std::shared_ptr<NodeImpl>> NodeImpl::create(const NodeOptions& options,
                                                   const TransportMaker& make,
                                                   std::shared_ptr<NodeExtension> extension) {
  HMC_ASSIGN(auto fds, FdExchange::create());
  HMC_ASSIGN(auto transports, make(options.transports, {*fds, options.channels}));
  std::string name = options.name.empty() ? "node-" + hex(randomBytes(4)) : options.name;
  std::shared_ptr<NodeImpl> node(new NodeImpl(name, std::move(fds), std::move(transports),
                                              !options.transports.empty(), traceFor(options),
                                              std::move(extension)));
  HMC_ASSIGN(node->measurements_, Measurements::fromEnvironment());
  control::ControlOptions control;
  control.name = name;
  control.secret = options.secret;
  control.heartbeat = options.heartbeat;
  control.lease = options.lease;
  const auto& asked = options.transports;
  control.ring = asked.empty() || std::find(asked.begin(), asked.end(), "ipc") != asked.end();
  HMC_ASSIGN(node->control_, control::Control::create(control, *node->fds_, *node));
  node->control_->setAttributes(node->attributes({}).encode());
  return node;
}

NodeImpl::NodeImpl(std::string name, std::unique_ptr<FdExchange> fds, TransportSet transports,
                   bool named, TraceHook trace, std::shared_ptr<NodeExtension> extension)
    : name_(std::move(name)),
      fds_(std::move(fds)),
      extension_(std::move(extension)),
      named_(named),
      missing_(std::move(transports.missing)) {
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
                   totals.retries, totals.stalls});
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
  if (!region.ptr || region.size == 0) {
    return error(Code::invalidArgument,
                 "region \"{}\" is {} bytes at {}: memory to register needs both", name,
                 region.size, region.ptr);
  }
  auto memory =
      LocalMemory::create(shared_from_this(), name, region, access, owned, std::move(owner));
  HMC_TRY(checkUsable());
  if (name.empty()) return memory;
  std::lock_guard lock(mutex_);
  auto& entry = memory_[name];
  if (!entry.expired()) {
    return error(Code::alreadyExists,
                 "a region called \"{}\" is registered already: choose another name", name);
  }
  entry = memory;
  return memory;
}

void NodeImpl::forget(const LocalMemory& memory) {
  std::lock_guard lock(mutex_);
  auto found = memory_.find(memory.name());
  if (found != memory_.end() && found->second.expired()) memory_.erase(found);
}

Result<std::shared_ptr<LocalMemory>> NodeImpl::registered(const std::string& name,
                                                          uint64_t number) const {
  std::lock_guard lock(mutex_);
  auto found = memory_.find(name);
  auto memory = found == memory_.end() ? nullptr : found->second.lock();
  if (memory && memory->number() == number) return memory;
  return error(Code::notFound, "{} no longer has the region \"{}\" that was opened", name_, name);
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
  std::lock_guard lock(mutex_);
  return peers_;
}

Result<NodeImpl::NoteFrom> NodeImpl::nextNote(Deadline deadline) {
  if (fork_.inChild()) return ForkGuard::refusal();
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline.at(), [&] { return !notes_.empty() || closed_; });
  if (notes_.empty()) {
    return closed_ ? error(Code::disconnected, "the Node {} was closed", name_)
                   : error(Code::deadlineExceeded, "no notification arrived in time");
  }
  NoteFrom first = std::move(notes_.front());
  notes_.pop_front();
  setNoteEventLocked();
  return first;
}

Result<int> NodeImpl::noteFd() {
  std::lock_guard lock(mutex_);
  if (!noteEvent_) {
    Fd made(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!made) return errnoStatus("making an eventfd for notifications");
    noteEvent_ = std::move(made);
    setNoteEventLocked();
  }
  return noteEvent_.get();
}

void NodeImpl::setNoteEventLocked() {
  const bool readable = !notes_.empty() || closed_;
  if (!noteEvent_ || readable == noteEventSet_) return;
  noteEventSet_ = readable;
  eventfd_t ignored;
  readable ? eventfd_write(noteEvent_.get(), 1) : eventfd_read(noteEvent_.get(), &ignored);
}

void NodeImpl::close() {
  std::vector<std::shared_ptr<PeerState>> all;
  std::vector<std::string> listeners;
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = true;
    all = peers_;
    for (const auto& [address, listener] : listeners_) listeners.push_back(address);
    changed_.notify_all();
    setNoteEventLocked();
  }
  Status why = error(Code::disconnected, "the Node {} was closed", name_);
  for (const auto& address : listeners) control_->closeListener(address);
  for (const auto& peer : all) peer->close(why);
}

Status NodeImpl::joined(const std::shared_ptr<control::Channel>& channel) {
  HMC_ASSIGN(auto theirs, Attributes::decode(channel->peer().attributes));
  auto peer = std::make_shared<PeerState>(*this, channel, std::move(theirs));
  std::lock_guard lock(mutex_);
  if (closed_) return error(Code::disconnected, "the Node {} was closed", name_);
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
  std::lock_guard lock(mutex_);
  peers_.erase(std::remove(peers_.begin(), peers_.end(), peer), peers_.end());
  changed_.notify_all();
}

Result<std::string> NodeImpl::answer(const std::shared_ptr<control::Channel>& channel,
                                     uint16_t method, std::string_view request) {
  if (method == kOpenRegion) return describeRegion(request);
  if (method == kProbe) return describeSelf();
  auto peer = find(channel.get());
  if (peer) return answerFor(*peer, method, request);
  return error(Code::disconnected, "{} no longer knows the peer that asks", name_);
}

Result<std::string> NodeImpl::answerFor(PeerState& peer, uint16_t method,
                                        std::string_view request) {
  if (method == kOpenLink) return peer.acceptLink(request);
  if (method == kOpenStage) return peer.offerStage(request);
  if (method == kCopySlot) return peer.copySlot(request);
  if (!extension_) return error(Code::unsupported, "{} does not know request {}", name_, method);
  auto answer = extension_->answer(peer, method, request);
  std::lock_guard lock(mutex_);
  changed_.notify_all();
  return answer;
}

void NodeImpl::note(const std::shared_ptr<control::Channel>& channel, std::string payload) {
  auto peer = find(channel.get());
  if (!peer) return;
  std::lock_guard lock(mutex_);
  notes_.push_back({std::move(peer), std::move(payload)});
  changed_.notify_all();
  setNoteEventLocked();
}

std::shared_ptr<PeerState> NodeImpl::find(const control::Channel* channel) const {
  std::lock_guard lock(mutex_);
  for (const auto& peer : peers_) {
    if (&peer->channel() == channel) return peer;
  }
  return nullptr;
}

Result<std::string> NodeImpl::describeRegion(std::string_view request) {
  Reader in(request);
  std::string wanted = in.string();
  std::vector<std::string> transports;
  for (uint32_t left = in.u32(); left > 0 && !in.failed(); --left)
    transports.push_back(in.string());
  HMC_TRY(in.finish("the request for a region"));
  std::shared_ptr<LocalMemory> memory;
  std::string names;
  {
    std::lock_guard lock(mutex_);
    auto found = memory_.find(wanted);
    if (found != memory_.end()) memory = found->second.lock();
    for (const auto& [name, entry] : memory_)
      names += (names.empty() ? "\"" : ", \"") + name + "\"";
  }
  if (memory) return memory->describe(transports);
  return error(Code::notFound, "{} has no region called \"{}\"; it has {}", name_, wanted,
               names.empty() ? "none" : names);
}

}  // namespace hmc
