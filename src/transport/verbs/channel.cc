#include "transport/verbs/channel.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>

#include "base/error.h"
#include "transport/check.h"

namespace hmc::verbs {

namespace {

// Work requests that one call hands to the NIC. Only the last one is signalled, for all of them.
constexpr size_t kChain = 32;
// Bytes that we ask the NIC to take with the request, which spares it a read of our memory.
constexpr int kInline = 220;
// Requests for one operation, at most.
constexpr size_t kPerOp = 2;

// Longer than a round trip through a NIC, or through soft-RoCE.
constexpr std::chrono::microseconds kSpin{200};
constexpr int kPollsPerClock = 8;

}  // namespace

// Linked work requests for one call of ibv_post_send().
struct Channel::Chain {
  std::array<ibv_send_wr, kChain> requests;
  std::array<ibv_sge, kChain> pieces;
  size_t size = 0;
  uint64_t head;  // sequence of the next one

  bool has(size_t more) const { return size + more <= kChain; }
  ibv_send_wr& add(SendSlot& slot, const ibv_sge& piece, ibv_wr_opcode opcode, uint64_t address,
                   uint32_t rkey) {
    ibv_send_wr& request = requests[size];
    pieces[size] = piece;
    request = {};
    request.wr_id = reinterpret_cast<uint64_t>(&slot);
    request.sg_list = &pieces[size];
    request.num_sge = 1;
    request.opcode = opcode;
    request.wr.rdma.remote_addr = address;
    request.wr.rdma.rkey = rkey;
    if (size > 0) requests[size - 1].next = &request;
    ++size;
    ++head;
    return request;
  }
};

Result<std::unique_ptr<Channel>> Channel::create(Owner& owner, size_t index, size_t nicIndex,
                                                 CompletionQueues& queues) {
  HMC_ASSIGN(auto pair,
             QueuePair::create(queues, {kDepth, 1, kInline}, QueuePair::Serves::nothing));
  return std::unique_ptr<Channel>(new Channel(owner, index, nicIndex, std::move(pair)));
}

Channel::~Channel() {
  if (!abandoned_) return;
  // Completions of a failed device may still come, and point to the slots.
  for (SendSlot& one : slots_) one.channel = nullptr;
  queues().keep(std::make_shared<std::vector<SendSlot>>(std::move(slots_)));
}

QpAddress Channel::address() const {
  return {static_cast<uint8_t>(nicIndex_), pair_.number(), psn_};
}

Status Channel::connect(const QpAddress& to, const PortAddress& port) {
  to_ = to;
  port_ = port;
  HMC_TRY(pair_.connect(to, port, psn_));
  stopping_.store(false);
  up_ = true;
  return Status();
}

Result<size_t> Channel::resume() {
  if (up_ || !drained()) return size_t{0};
  HMC_TRY(pair_.reset());
  HMC_TRY(connect(to_, port_));
  const size_t count = held_.size();
  const size_t started = post(held_);
  held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(started));
  HMC_TRY(refusal_);
  if (started == count) return started;
  // They were under way before, so there was room for all of them.
  return error(Code::failed, "an RDMA channel of {} took {} of {} operations after its reset",
               nic().port().name(), started, count);
}

void Channel::failHeld(const Status& why) {
  for (const Op& op : std::exchange(held_, {})) op.completion->fail(why);
}

void Channel::stop() {
  up_ = false;
  stopping_.store(true);
  pair_.stop();
}

bool Channel::drained() const {
  return tail_.load() == head_.load();
}

bool Channel::hasRoom() const {
  return up_ && head_.load(std::memory_order_relaxed) + kPerOp <=
                    tail_.load(std::memory_order_acquire) + kDepth;
}

size_t Channel::post(std::span<const Op> ops) {
  size_t started = 0;
  while (up_ && started < ops.size()) {
    Chain chain;
    chain.head = head_.load(std::memory_order_relaxed);
    const uint64_t full = tail_.load(std::memory_order_acquire) + kDepth;
    size_t taken = 0;
    while (started + taken < ops.size() && chain.has(kPerOp) && chain.head + kPerOp <= full) {
      add(chain, ops[started + taken++]);
    }
    if (taken == 0) break;
    launch(chain);
    started += taken;
  }
  return started;
}

void Channel::add(Chain& chain, const Op& op) {
  const auto& remote = static_cast<const VerbsRemote&>(*op.remote);
  const auto& registration = static_cast<const VerbsRegistration&>(*op.registration);
  const uint32_t rkey = remote.rkey(to_.port);
  const ibv_sge piece{reinterpret_cast<uint64_t>(op.local), static_cast<uint32_t>(op.size),
                      registration.lkey(nicIndex_)};
  SendSlot& mine = slot(chain.head);
  mine.op = op;
  ibv_send_wr& request =
      chain.add(mine, piece, op.kind == OpKind::put ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
                remote.at(op.remoteOffset), rkey);
  posted_ += op.size;
  if (op.kind == OpKind::get) return;
  const bool host = registration.region.device.isHost();
  if (host && op.size <= pair_.inlined()) request.send_flags = IBV_SEND_INLINE;
  if (remote.visibleWhenAcknowledged()) return;
  // A read of the last byte after a write: its answer comes once the write is in place.
  SendSlot& flush = slot(chain.head);
  flush.op = {};
  chain.add(flush, nic().scratch(), IBV_WR_RDMA_READ, remote.at(op.remoteOffset + op.size - 1),
            rkey);
}

void Channel::launch(Chain& chain) {
  chain.requests[chain.size - 1].send_flags |= IBV_SEND_SIGNALED;
  head_.store(chain.head, std::memory_order_release);
  ibv_send_wr* refused = nullptr;
  const int failed = ibv_post_send(pair_.get(), &chain.requests[0], &refused);
  if (failed == 0) return;
  // There was room, so something is broken. The operations end when the link is fenced.
  refusal_ = errnoStatus(fmt::format("posting to a queue pair of {}", nic().port().name()),
                         failed > 0 ? failed : errno);
}

void Channel::handle(const ibv_wc& wc) {
  SendSlot& slot = *std::bit_cast<SendSlot*>(wc.wr_id);
  if (slot.channel) slot.channel->completed(slot, wc);
}

void Channel::completed(SendSlot& mine, const ibv_wc& wc) {
  if (abandoned_) return;
  const uint64_t tail = tail_.load(std::memory_order_relaxed);
  const auto position = static_cast<uint64_t>(&mine - slots_.data());
  const uint64_t sequence = tail + (position + kDepth - tail % kDepth) % kDepth;
  // A queue pair works in order: what was posted before this one has succeeded.
  if (wc.status == IBV_WC_SUCCESS) {
    finishBefore(sequence + 1);
  } else {
    // Without the read after it, nobody knows whether a put has arrived.
    const uint64_t first = mine.op.completion ? sequence : std::max(tail, sequence - 1);
    finishBefore(first);
    const Op op = slot(first).op;
    ended_.fetch_add(op.size, std::memory_order_relaxed);
    tail_.store(sequence + 1);
    owner_.failed(*this, op.completion ? &op : nullptr, wc);
  }
  if (stopping_.load() && drained()) owner_.drained(*this);
}

void Channel::finishBefore(uint64_t sequence) {
  Completion* run = nullptr;
  uint32_t count = 0;
  uint64_t bytes = 0;
  for (uint64_t at = tail_.load(std::memory_order_relaxed); at < sequence; ++at) {
    const Op& op = slot(at).op;
    bytes += op.size;
    if (!op.completion) continue;
    if (op.completion != run) {
      if (run) run->finish(count);
      run = op.completion;
      count = 0;
    }
    ++count;
  }
  ended_.fetch_add(bytes, std::memory_order_relaxed);
  if (run) run->finish(count);
  // Only now may the slots be used again.
  tail_.store(sequence);
}

std::vector<Op> Channel::abandon() {
  std::vector<Op> left;
  const uint64_t head = head_.load();
  abandoned_ = abandoned_ || tail_.load() != head;
  for (uint64_t at = tail_.load(); at < head; ++at) {
    if (slot(at).op.completion) left.push_back(slot(at).op);
  }
  tail_.store(head);
  return left;
}

Result<std::unique_ptr<Progress>> Progress::create(const Nics& nics) {
  HMC_ASSIGN(EventFd wake, EventFd::create("RDMA"));
  std::unique_ptr<Progress> progress(new Progress(std::move(wake)));
  for (const auto& nic : nics) {
    HMC_ASSIGN(auto made, CompletionQueues::create(*nic));
    progress->queues_.push_back(std::move(made));
  }
  return progress;
}

bool Progress::poll() {
  size_t count = 0;
  for (const auto& queues : queues_) count += queues->poll(Channel::handle);
  return count > 0;
}

bool Progress::run(Deadline until) {
  if (poll()) return true;
  const auto spinUntil = Deadline::Clock::now() + kSpin;
  do {
    for (int i = 0; i < kPollsPerClock; ++i) {
      if (poll()) return true;
    }
    if (until.passed()) return false;
  } while (Deadline::Clock::now() < spinUntil);
  return await(until);
}

bool Progress::await(Deadline until) {
  std::vector<pollfd> waiting{{wake_.get(), POLLIN, 0}};
  for (const auto& queues : queues_) {
    queues->arm();
    waiting.push_back({queues->fd(), POLLIN, 0});
  }
  // What ended between the last poll and the arming is not announced.
  if (poll()) return true;
  ::poll(waiting.data(), waiting.size(), until.leftMs());
  if (waiting[0].revents != 0) wake_.clear();
  for (size_t i = 0; i < queues_.size(); ++i) {
    if (waiting[i + 1].revents != 0) queues_[i]->acknowledge();
  }
  return poll();
}

bool concernsOneOperation(ibv_wc_status status) {
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
                 "{} of {} bytes at remote offset {}: the peer's NIC refused it ({}); the peer has "
                 "unregistered that memory",
                 opName(op.kind), op.size, op.remoteOffset, library.ibv_wc_status_str(wc.status));
  }
  return error(Code::failed, "{} of {} bytes at remote offset {}: {}", opName(op.kind), op.size,
               op.remoteOffset, library.ibv_wc_status_str(wc.status));
}

}  // namespace hmc::verbs
