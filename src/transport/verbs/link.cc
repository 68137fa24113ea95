#include "transport/verbs/link.h"

#include <algorithm>

#include "base/error.h"
#include "transport/check.h"
#include "transport/verbs/memory.h"

namespace hmc::verbs {

namespace {

constexpr std::chrono::milliseconds kHelloTimeout{10000};
// A channel may have this many bytes more under way than the least busy one before we change over:
// requests that go to the NIC together cost one doorbell.
constexpr uint64_t kUneven = 256 << 10;

}  // namespace

Result<std::unique_ptr<Link>> VerbsLink::create(const Nics& nics, int channels, Service& service,
                                                Progress& progress, TransportCounters& counters,
                                                const LinkOptions& options) {
  std::unique_ptr<VerbsLink> link(new VerbsLink(nics, service, progress, counters, options));
  HMC_TRY(link->makeQueuePairs(static_cast<size_t>(channels)));
  link->encoded_ = link->describe().encode();
  service.add(*link, *link->control_);
  return std::unique_ptr<Link>(std::move(link));
}

Status VerbsLink::makeQueuePairs(size_t channels) {
  for (size_t i = 0; i < channels; ++i) {
    const size_t nic = i % nics_.size();
    HMC_ASSIGN(auto channel, Channel::create(*this, i, nic, progress_.queues(nic)));
    channels_.push_back(std::move(channel));
    HMC_ASSIGN(auto pair,
               QueuePair::create(progress_.queues(nic), {1, 1, 0}, QueuePair::Serves::peer));
    incoming_.push_back(std::move(pair));
  }
  HMC_ASSIGN(control_, ControlQp::create(service_.queues()));
  return Status();
}

Address VerbsLink::describe() const {
  Address address;
  for (const auto& nic : nics_) address.ports.push_back(portAddressOf(*nic));
  address.control = control_->address();
  for (size_t i = 0; i < channels_.size(); ++i) {
    address.outgoing.push_back(channels_[i]->address());
    address.incoming.push_back({static_cast<uint8_t>(i % nics_.size()), incoming_[i].number(), 0});
  }
  return address;
}

VerbsLink::~VerbsLink() {
  if (control_) {
    close(error(Code::cancelled, "the link was destroyed"));
    std::unique_lock lock(mutex_);
    while (!drainedLocked() || holdingLocked()) {
      // The NIC gives back its work at once. The peer's last message may take longer.
      const bool draining = !drainedLocked();
      lock.unlock();
      for (const auto& channel : channels_) channel->queues().poll(Channel::handle);
      lock.lock();
      if (!draining) changed_.wait_for(lock, std::chrono::milliseconds(20));
    }
    lock.unlock();
    service_.remove(*this, std::move(control_));
  }
  // A thread that handles completions may be about to return from drained().
  for (const auto& channel : channels_) channel->queues().pause();
}

bool VerbsLink::drainedLocked() const {
  return std::all_of(channels_.begin(), channels_.end(),
                     [](const auto& channel) { return channel->drained(); });
}

bool VerbsLink::holdingLocked() const {
  return std::any_of(channels_.begin(), channels_.end(),
                     [](const auto& channel) { return channel->holding(); });
}

std::string VerbsLink::peerName() const {
  return connected_ ? Gid{0, {}, peer_.ports[0].gid}.toString() : "an unknown address";
}

Status VerbsLink::connect(std::string_view peerAddress) {
  HMC_ASSIGN(Address peer, Address::decode(peerAddress));
  std::lock_guard lock(mutex_);
  if (closed_) return error(Code::disconnected, "this RDMA link is closed");
  if (connected_) return error(Code::invalidArgument, "this RDMA link is already connected");
  connected_ = true;
  peer_ = std::move(peer);
  Status status = connectLocked();
  if (!status.ok()) closeLocked(status);
  return status;
}

Status VerbsLink::connectLocked() {
  // The side with fewer channels decides how many are used.
  const size_t theirs = std::min(incoming_.size(), peer_.outgoing.size());
  for (size_t i = 0; i < theirs; ++i) {
    const QpAddress& to = peer_.outgoing[i];
    HMC_TRY(incoming_[i].connect(to, peer_.ports[to.port], 0));
  }
  const size_t ours = std::min(channels_.size(), peer_.incoming.size());
  for (size_t i = 0; i < ours; ++i) {
    const QpAddress& to = peer_.incoming[i];
    HMC_TRY(channels_[i]->connect(to, peer_.ports[to.port]));
  }
  HMC_TRY(control_->connect(peer_.control, peer_.ports[peer_.control.port]));
  timer_ = Clock::now() + kHelloTimeout;
  service_.wake();
  // The other side has connected before us, so it receives this and answers.
  return initiator_ ? control_->send({ControlMessage::Kind::hello, 0, 0}) : Status();
}

Result<std::unique_ptr<RemoteMemory>> VerbsLink::importKey(std::string_view key, Deadline deadline,
                                                           void* place) {
  HMC_TRY(checkPlace(place, "verbs"));
  std::unique_lock lock(mutex_);
  // Waits for the hello, which shows that packets arrive: here the caller can still take another
  // transport, after the first put it could not.
  changed_.wait_until(lock, deadline.at(), [&] { return up_ || closed_; });
  if (closed_) return why_;
  if (!up_) {
    return error(Code::deadlineExceeded, "the peer at {} did not answer over RDMA in time",
                 peerName());
  }
  return VerbsRemote::decode(key, peer_.ports.size(), {pathName(nics_), ""});
}

size_t VerbsLink::post(std::span<const Op> ops) {
  std::lock_guard lock(mutex_);
  size_t accepted = 0;
  while (accepted < ops.size()) {
    if (Status status = closed_ ? why_ : checkOp(ops[accepted], largest_); !status.ok()) {
      ops[accepted++].completion->fail(status);
      continue;
    }
    if (!up_) break;
    // Valid operations that go to one channel together: no more than keeps the channels even.
    size_t end = accepted + 1;
    uint64_t bytes = ops[accepted].size;
    while (end < ops.size() && bytes < kUneven && checkOp(ops[end], largest_).ok())
      bytes += ops[end++].size;
    const size_t started = postOnOneChannel(ops.subspan(accepted, end - accepted));
    accepted += started;
    if (started == 0 && !closed_) break;
  }
  return accepted;
}

// How many operations, from the front, were started: 0 while no channel has room.
size_t VerbsLink::postOnOneChannel(std::span<const Op> ops) {
  Channel* least = nullptr;
  for (const auto& channel : channels_) {
    if (channel->hasRoom() && (!least || channel->load() < least->load())) least = channel.get();
  }
  if (!least) return 0;
  const Channel& favourite = *channels_[favourite_];
  if (!favourite.hasRoom() || favourite.load() > least->load() + kUneven) {
    favourite_ = least->index();
  }
  Channel& chosen = *channels_[favourite_];
  const size_t started = chosen.post(ops);
  // A NIC that refuses work for which it had room is of no use any more.
  if (!chosen.refusal().ok()) closeLocked(chosen.refusal());
  return started;
}

// An error breaks its channel at both ends, and the NIC flushes what was posted after it. That is
// posted again once both ends are reset: an operation may be done twice until its completion.
void VerbsLink::failed(Channel& channel, const Op* op, const ibv_wc& wc) {
  std::lock_guard lock(mutex_);
  const Library& library = channel.nic().library();
  const bool one = concernsOneOperation(wc.status);
  if (!closed_ && op && one) {
    op->completion->fail(refusal(*op, wc, library));
  } else if (op) {
    channel.hold(*op);
  }
  if (closed_) return;
  if (one || wc.status == IBV_WC_WR_FLUSH_ERR) {
    if (channel.up()) channel.stop();
    return;
  }
  closeLocked(error(Code::disconnected, "lost the peer at {} over {}: {}{}", peerName(),
                    channel.nic().port().name(), library.ibv_wc_status_str(wc.status),
                    channel.nic().trouble()));
}

void VerbsLink::drained(Channel& channel) {
  std::lock_guard lock(mutex_);
  if (closed_) return settleLocked();
  sendLocked(
      {ControlMessage::Kind::reset, static_cast<uint8_t>(channel.index()), channel.renewPsn()});
}

void VerbsLink::received(const ControlMessage& message) {
  using Kind = ControlMessage::Kind;
  std::lock_guard lock(mutex_);
  if (message.kind == Kind::closed) {
    fenced_ = true;
    closeLocked(error(Code::disconnected, "the peer has closed the RDMA link"));
  } else if (closed_) {
    return;
  } else if (message.kind == Kind::hello && !up_) {
    up_ = true;
    timer_ = Clock::time_point::max();
    if (!initiator_) sendLocked({Kind::hello, 0, 0});
  } else if (message.kind == Kind::reset) {
    resetIncoming(message);
  } else if (message.kind == Kind::resetDone && message.channel < channels_.size()) {
    auto resumed = channels_[message.channel]->resume();
    if (!resumed.ok()) closeLocked(resumed.status());
    if (resumed.ok()) counters_.retries.fetch_add(*resumed, std::memory_order_relaxed);
  }
  changed_.notify_all();
  progress_.wake();
}

// The peer's channel broke: our end of it starts again.
void VerbsLink::resetIncoming(const ControlMessage& message) {
  if (message.channel >= incoming_.size() || message.channel >= peer_.outgoing.size()) return;
  QpAddress& from = peer_.outgoing[message.channel];
  from.psn = message.psn;
  QueuePair& pair = incoming_[message.channel];
  Status status = pair.reset();
  if (status.ok()) status = pair.connect(from, peer_.ports[from.port], 0);
  if (!status.ok()) return closeLocked(status.within("resetting an RDMA channel"));
  sendLocked({ControlMessage::Kind::resetDone, message.channel, 0});
}

void VerbsLink::lost(const Status& why) {
  std::lock_guard lock(mutex_);
  // The NIC has given up retrying, so nothing of ours is still on its way.
  fenced_ = true;
  closeLocked(why);
}

void VerbsLink::sendLocked(const ControlMessage& message) {
  Status status = control_->send(message);
  if (status.ok()) return;
  fenced_ = true;
  closeLocked(status);
}

void VerbsLink::close(const Status& why) {
  std::lock_guard lock(mutex_);
  closeLocked(why);
}

// Calls after the first only check whether everything has ended.
void VerbsLink::closeLocked(const Status& why) {
  if (closed_) return settleLocked();
  closed_ = true;
  why_ = why;
  // Before the message that says so.
  for (QueuePair& pair : incoming_) pair.stop();
  for (const auto& channel : channels_) channel->stop();
  if (!connected_ || !control_->send({ControlMessage::Kind::closed, 0, 0}).ok()) fenced_ = true;
  timer_ = Clock::now() + fenceLength_;
  service_.wake();
  changed_.notify_all();
  progress_.wake();
  settleLocked();
}

// Everything pending fails as soon as no byte of it can move any more.
void VerbsLink::settleLocked() {
  if (!closed_ || !drainedLocked()) return;
  if (holdingLocked() && !fenced_) return;
  timer_ = Clock::time_point::max();
  for (const auto& channel : channels_) channel->failHeld(why_);
  changed_.notify_all();
  progress_.wake();
}

void VerbsLink::expire() {
  {
    std::lock_guard lock(mutex_);
    if (timer_.load() > Clock::now()) return;
    if (!closed_) {
      return closeLocked(
          error(Code::disconnected, "the peer at {} did not answer over RDMA", peerName()));
    }
  }
  takeBackEverything();
}

// The lease is over, so the peer applies nothing any more. A device that has not completed our work
// by now never will.
void VerbsLink::takeBackEverything() {
  for (const auto& channel : channels_) {
    // Completions that nobody has polled are no sign of a dead device.
    channel->queues().poll(Channel::handle);
    auto pause = channel->queues().pause();
    std::lock_guard lock(mutex_);
    for (const Op& op : channel->abandon()) channel->hold(op);
  }
  std::lock_guard lock(mutex_);
  fenced_ = true;
  settleLocked();
}

}  // namespace hmc::verbs
