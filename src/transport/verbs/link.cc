#include "transport/verbs/link.h"

#include <algorithm>

#include "base/error.h"
#include "transport/check.h"

namespace hmc::verbs {

namespace {

// A channel may be that much busier than the others before they are chosen: requests that go to the
// NIC together cost one doorbell.
constexpr uint64_t kStick = 256 << 10;
constexpr std::chrono::milliseconds kPatience{10000};

}  // namespace

Result<std::unique_ptr<Link>> VerbsLink::create(const Nics& nics, int channels, Service& service,
                                                Progress& progress, const LinkOptions& options) {
  std::unique_ptr<VerbsLink> link(new VerbsLink(nics, service, progress, options));
  HMC_TRY(link->makeQueuePairs(channels));
  link->encoded_ = link->describe().encode();
  service.add(*link, *link->words_);
  return std::unique_ptr<Link>(std::move(link));
}

Status VerbsLink::makeQueuePairs(int channels) {
  for (size_t i = 0; i < static_cast<size_t>(channels); ++i) {
    const size_t nic = i % nics_.size();
    CompletionQueues& queues = progress_.queues(nic);
    HMC_ASSIGN(auto channel, Channel::create(*this, i, nic, *nics_[nic], queues));
    channels_.push_back(std::move(channel));
    // Nothing is ever posted to it, so any queue will do.
    HMC_ASSIGN(ibv_cq * queue, queues.reserve(0));
    HMC_ASSIGN(auto pair,
               QueuePair::create(*nics_[nic], queue, {1, 1, 0}, QueuePair::Serves::peer));
    incoming_.push_back(std::move(pair));
  }
  held_.resize(channels_.size());
  HMC_ASSIGN(words_, Words::create(*nics_[0], 0, service_.queues(0)));
  return Status();
}

Address VerbsLink::describe() const {
  Address address;
  for (const auto& nic : nics_) address.places.push_back(placeOf(*nic));
  address.words = words_->pair();
  for (size_t i = 0; i < channels_.size(); ++i) {
    address.outgoing.push_back(channels_[i]->pair());
    address.incoming.push_back({static_cast<uint8_t>(i % nics_.size()), incoming_[i].number(), 0});
  }
  return address;
}

VerbsLink::~VerbsLink() {
  if (words_) {
    close(error(Code::cancelled, "the link was destroyed"));
    std::unique_lock lock(mutex_);
    while (!allDrainedLocked() || anyHeldLocked()) {
      // What the NIC gives back comes at once; the peer's word, if it is needed, later.
      const bool draining = !allDrainedLocked();
      lock.unlock();
      for (auto& channel : channels_) channel->queues().poll(Channel::handle);
      lock.lock();
      if (!draining) changed_.wait_for(lock, std::chrono::milliseconds(20));
    }
    lock.unlock();
    service_.remove(*this, std::move(words_));
  }
  // Who handles completions may just be leaving drained().
  for (auto& channel : channels_) channel->queues().pause();
}

Status VerbsLink::connect(std::string_view peerAddress) {
  HMC_ASSIGN(Address peer, Address::decode(peerAddress));
  std::lock_guard lock(mutex_);
  if (closed_) return error(Code::disconnected, "this RDMA link is closed");
  if (connected_) return error(Code::invalidArgument, "this RDMA link is already connected");
  connected_ = true;
  peer_ = std::move(peer);
  Status status = connectLocked(peer_);
  if (!status.ok()) closeLocked(status);
  return status;
}

Status VerbsLink::connectLocked(const Address& peer) {
  // The side with fewer channels decides.
  const size_t ours = std::min(channels_.size(), peer.incoming.size());
  const size_t theirs = std::min(incoming_.size(), peer.outgoing.size());
  for (size_t i = 0; i < theirs; ++i) {
    const auto& to = peer.outgoing[i];
    HMC_TRY(incoming_[i].connect(to, peer.places[to.place], 0));
  }
  for (size_t i = 0; i < ours; ++i) {
    const auto& to = peer.incoming[i];
    HMC_TRY(channels_[i]->connect(to, peer.places[to.place]));
  }
  HMC_TRY(words_->connect(peer.words, peer.places[peer.words.place]));
  timer_ = Clock::now() + kPatience;
  service_.wake();
  // The other side connected before us, so that it hears this; it answers.
  return initiator_ ? words_->send({Word::Kind::hello, 0, 0}) : Status();
}

Result<std::unique_ptr<RemoteMemory>> VerbsLink::importKey(std::string_view key, Deadline deadline,
                                                           void* place) {
  HMC_TRY(checkPlace(place, "verbs"));
  std::unique_lock lock(mutex_);
  // Whether packets really arrive shows only now: better here, where another transport can still
  // be taken, than in the first put.
  changed_.wait_until(lock, deadline.at(), [&] { return up_ || closed_; });
  if (closed_) return why_;
  if (!up_) {
    return error(Code::deadlineExceeded, "the peer at {} did not answer over RDMA in time",
                 connected_ ? Gid{0, {}, peer_.places[0].gid}.toString() : "an unknown address");
  }
  return VerbsRemote::decode(key, peer_.places.size(), {wayOf(nics_), ""});
}

size_t VerbsLink::post(std::span<const Op> ops) {
  std::lock_guard lock(mutex_);
  size_t accepted = 0;
  while (accepted < ops.size()) {
    if (closed_) {
      ops[accepted++].completion->fail(why_);
      continue;
    }
    if (Status status = checkOp(ops[accepted], largest_); !status.ok()) {
      ops[accepted++].completion->fail(status);
      continue;
    }
    if (!up_) break;
    // As many as go together: what is in order, and not more than keeps the channels even.
    size_t end = accepted + 1;
    uint64_t bytes = ops[accepted].size;
    while (end < ops.size() && bytes < kStick && checkOp(ops[end], largest_).ok())
      bytes += ops[end++].size;
    Channel* channel = pick();
    const size_t started = channel ? channel->post(ops.subspan(accepted, end - accepted)) : 0;
    accepted += started;
    if (channel && !channel->refusal().ok()) closeLocked(channel->refusal());
    if (started == 0 && !closed_) break;
  }
  return accepted;
}

// Stays with a channel until it is busier than the least busy one by kStick, then goes to that one.
Channel* VerbsLink::pick() {
  Channel* least = nullptr;
  for (auto& channel : channels_) {
    if (channel->hasRoom() && (!least || channel->load() < least->load())) least = channel.get();
  }
  if (!least) return nullptr;
  Channel& favourite = *channels_[favourite_];
  if (favourite.hasRoom() && favourite.load() <= least->load() + kStick) return &favourite;
  favourite_ = least->index();
  return least;
}

}  // namespace hmc::verbs
