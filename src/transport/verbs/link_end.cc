#include <algorithm>

#include "base/error.h"
#include "transport/check.h"
#include "transport/verbs/link.h"

// How a link breaks, mends itself and ends.
namespace hmc::verbs {

namespace {

constexpr std::chrono::milliseconds kFenceWithoutLease{5000};

// Errors that concern one operation; after all others the peer is out of reach.
bool concernsOne(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_BAD_RESP_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_OP_ERR:
      return true;
    default:
      return false;
  }
}

Status refusal(const Op& op, const ibv_wc& wc, const Library& library) {
  if (wc.status == IBV_WC_REM_ACCESS_ERR || wc.status == IBV_WC_REM_INV_REQ_ERR) {
    return error(Code::notFound,
                 "{} of {} bytes at remote offset {}: the peer's NIC refuses it ({}); the peer has "
                 "unregistered that memory",
                 opName(op.kind), op.size, op.remoteOffset, library.wcStatusStr(wc.status));
  }
  return error(Code::failed, "{} of {} bytes at remote offset {}: {}", opName(op.kind), op.size,
               op.remoteOffset, library.wcStatusStr(wc.status));
}

}  // namespace

// An error breaks its channel: the NIC sweeps away what was posted after it, and the peer's end is
// broken too. The others are posted again when both ends are new. Puts and gets may be done twice
// as long as nobody was told that they are done.
void VerbsLink::failed(Channel& channel, const Op* op, const ibv_wc& wc) {
  std::lock_guard lock(mutex_);
  if (!closed_ && op && concernsOne(wc.status)) {
    op->completion->fail(refusal(*op, wc, channel.nic().library()));
  } else if (op) {
    held_[channel.index()].push_back(*op);
  }
  if (closed_) return;
  if (concernsOne(wc.status) || wc.status == IBV_WC_WR_FLUSH_ERR) {
    if (channel.up()) channel.stop();
    return;
  }
  closeLocked(error(Code::disconnected, "the peer at {} is not reached over {}: {}{}",
                    Gid{0, {}, peer_.places[0].gid}.toString(), channel.nic().port().name(),
                    channel.nic().library().wcStatusStr(wc.status), channel.nic().trouble()));
}

void VerbsLink::drained(Channel& channel) {
  std::lock_guard lock(mutex_);
  if (closed_) return settleLocked();
  sayLocked({Word::Kind::renew, static_cast<uint8_t>(channel.index()), channel.renewFirstPacket()});
}

void VerbsLink::heard(const Word& word) {
  std::lock_guard lock(mutex_);
  switch (word.kind) {
    case Word::Kind::hello:
      if (closed_ || up_) break;
      up_ = true;
      timer_ = Clock::time_point::max();
      if (!initiator_) sayLocked({Word::Kind::hello, 0, 0});
      break;
    case Word::Kind::renew:
      if (!closed_) renewIncoming(word);
      break;
    case Word::Kind::renewed:
      if (!closed_ && word.channel < channels_.size()) resume(*channels_[word.channel]);
      break;
    case Word::Kind::stopped:
      fenced_ = true;
      closeLocked(error(Code::disconnected, "the peer has closed the RDMA link"));
      break;
  }
  changed_.notify_all();
  progress_.wake();
}

// The peer's channel broke: our end of it starts anew.
void VerbsLink::renewIncoming(const Word& word) {
  if (word.channel >= incoming_.size() || word.channel >= peer_.outgoing.size()) return;
  Address::Pair& from = peer_.outgoing[word.channel];
  from.firstPacket = word.packet;
  QueuePair& pair = incoming_[word.channel];
  Status status = pair.reset();
  if (status.ok()) status = pair.connect(from, peer_.places[from.place], 0);
  if (!status.ok()) return closeLocked(status.within("renewing an RDMA channel"));
  sayLocked({Word::Kind::renewed, word.channel, 0});
}

void VerbsLink::resume(Channel& channel) {
  if (channel.up() || !channel.drained()) return;
  if (Status status = channel.connectAgain(); !status.ok()) return closeLocked(status);
  std::vector<Op> again;
  again.swap(held_[channel.index()]);
  // They were under way before, so there is room for them.
  if (channel.post(again) < again.size()) {
    held_[channel.index()] = again;
    closeLocked(error(Code::failed, "an RDMA channel of {} takes no work after it was renewed",
                      channel.nic().port().name()));
  }
}

void VerbsLink::lost(const Status& why) {
  std::lock_guard lock(mutex_);
  // After this long without an answer nothing of ours is still on its way.
  fenced_ = true;
  closeLocked(why);
}

bool VerbsLink::uses(const Nic& nic) const {
  return std::any_of(nics_.begin(), nics_.end(),
                     [&](const auto& one) { return one.get() == &nic; });
}

void VerbsLink::sayLocked(const Word& word) {
  Status status = words_->send(word);
  if (status.ok()) return;
  fenced_ = true;
  closeLocked(status);
}

void VerbsLink::close(const Status& why) {
  std::lock_guard lock(mutex_);
  closeLocked(why);
}

std::chrono::milliseconds VerbsLink::fenceLength() const {
  return lease_ ? lease_->length() : kFenceWithoutLease;
}

// Calls after the first only look whether everything has ended.
void VerbsLink::closeLocked(const Status& why) {
  if (closed_) return settleLocked();
  closed_ = true;
  why_ = why;
  // First what the peer asks of us, because the word says so.
  for (QueuePair& pair : incoming_) pair.stop();
  for (auto& channel : channels_) channel->stop();
  if (!connected_ || !words_->send({Word::Kind::stopped, 0, 0}).ok()) fenced_ = true;
  timer_ = Clock::now() + fenceLength();
  service_.wake();
  changed_.notify_all();
  progress_.wake();
  settleLocked();
}

bool VerbsLink::allDrainedLocked() const {
  return std::all_of(channels_.begin(), channels_.end(),
                     [](const auto& channel) { return channel->drained(); });
}

bool VerbsLink::anyHeldLocked() const {
  return std::any_of(held_.begin(), held_.end(), [](const auto& held) { return !held.empty(); });
}

// Everything pending fails as soon as no byte of it can move any more.
void VerbsLink::settleLocked() {
  if (!closed_ || !allDrainedLocked()) return;
  if (anyHeldLocked() && !fenced_) return;
  timer_ = Clock::time_point::max();
  for (auto& held : held_) {
    for (const Op& op : held) op.completion->fail(why_);
    held.clear();
  }
  changed_.notify_all();
  progress_.wake();
}

void VerbsLink::expire() {
  {
    std::lock_guard lock(mutex_);
    if (timer_.load() > Clock::now()) return;
    if (!closed_) {
      closeLocked(error(Code::disconnected, "the peer at {} did not answer over RDMA",
                        Gid{0, {}, peer_.places[0].gid}.toString()));
      return;
    }
  }
  takeBackEverything();
}

// The lease is over: the peer applies nothing any more. A device that has not given back what was
// posted by now never will.
void VerbsLink::takeBackEverything() {
  for (auto& channel : channels_) {
    // What has ended and nobody has asked about is no sign of a dead device.
    channel->queues().poll(Channel::handle);
    auto pause = channel->queues().pause();
    std::lock_guard lock(mutex_);
    for (const Op& op : channel->abandon()) held_[channel->index()].push_back(op);
  }
  std::lock_guard lock(mutex_);
  fenced_ = true;
  settleLocked();
}

}  // namespace hmc::verbs
