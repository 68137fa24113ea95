#include "transport/tcp/origin.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/log.h"
#include "base/proof.h"
#include "transport/tcp/socket.h"

namespace hmc::tcp {

namespace {
// How often to ask whether a target that does not answer is still there.
constexpr std::chrono::milliseconds kLookEvery{20};
}  // namespace

OriginStream::OriginStream(std::chrono::milliseconds fence, TransportCounters& counters)
    : fence_(fence), counters_(counters) {}

Status OriginStream::attach(Connection connection, std::string peer, Ends ends, Progress& progress,
                            uint64_t number, size_t index) {
  std::lock_guard lock(mutex_);
  if (!why_.ok() || fd_) return Status();
  HMC_TRY(progress.watch(connection.get(), number, index));
  fd_ = std::move(connection);
  needed_.store(index == 0, std::memory_order_relaxed);
  attached_.store(true, std::memory_order_release);
  peer_ = std::move(peer);
  greeting_ = std::move(ends.greeting);
  farewell_ = std::move(ends.farewell);
  exchange_ = std::move(ends.exchange);
  checked_ = ends.checked;
  if (greeting_.empty()) setUp();
  sendAll();
  return Status();
}

Status OriginStream::why() const {
  std::lock_guard lock(mutex_);
  return why_;
}

int OriginStream::fd() const {
  std::lock_guard lock(mutex_);
  return fd_.get();
}

bool OriginStream::enqueue(const Op& op) {
  std::lock_guard lock(mutex_);
  if (!why_.ok()) {
    op.completion->fail(why_);
    return true;
  }
  const uint64_t cost = op.size + kOpCost;
  if (!usable() || !fd_ || end_ - first_ == kWindow) return false;
  if (end_ != first_ && load() + cost > kWindowBytes) return false;
  if (slots_.empty()) {
    slots_.resize(kWindow);
    in_.resize(kReadAhead);
    if (checked_) trailers_.resize(kWindow);
  }
  Slot& s = slot(end_);
  s.op = op;
  if (Status status = prepare(s, end_); !status.ok()) {
    op.completion->fail(status);
    return true;
  }
  ++end_;
  load_.fetch_add(cost, std::memory_order_relaxed);
  return true;
}

void OriginStream::flush(bool more) {
  std::lock_guard lock(mutex_);
  if (why_.ok()) sendAll(more);
}

void OriginStream::finish() {
  std::lock_guard lock(mutex_);
  if (fd_ && std::exchange(corked_, false)) sendNow(fd_.get());
}

bool OriginStream::pump(bool over) {
  std::lock_guard lock(mutex_);
  const uint64_t before = finished_;
  if (why_.ok()) {
    sendAll();
    receiveAll(over);
  } else {
    discardAll();
  }
  return finished_ != before;
}

void OriginStream::setUp() {
  target_ = LocalPeer(fd_.get(), exchange_);
  up_.store(true, std::memory_order_release);
}

// Keeps the last bytes. Most often they are few: what is large is a get's.
void OriginStream::hear(const char* bytes, size_t size) {
  const size_t kept = std::min(size, farewell_.size());
  if (last_.size() + kept > farewell_.size())
    last_.erase(0, last_.size() + kept - farewell_.size());
  last_.append(bytes + size - kept, kept);
}

bool OriginStream::isFenced() const {
  return (!farewell_.empty() && sameProof(last_, farewell_)) || target_.gone();
}

void OriginStream::endFirst(const Status& status) {
  Slot& s = slot(first_);
  const Op& op = s.op;
  Completion* completion = op.completion;
  load_.fetch_sub(op.size + kOpCost, std::memory_order_relaxed);
  ++first_;
  ++finished_;
  payloadCame_ = false;
  const Status found = std::exchange(s.failure, Status());
  completion->end(found.ok() ? status : found);
}

void OriginStream::dropIfNotUp() {
  std::lock_guard lock(mutex_);
  if (mayDrop()) drop();
}

void OriginStream::drop() {
  logDebug("tcp: a further connection with {} did not come up", peer_);
  fd_.reset();
  greeting_.clear();
  attached_.store(false, std::memory_order_release);
}

void OriginStream::broken(const std::string& what, int errnum) {
  if (mayDrop()) return drop();
  const Status tls = fd_.problem();
  Status why = errnum == 0 ? error(Code::disconnected, "{} closed the connection", peer_)
                           : error(Code::disconnected, "{} {}: {}", what, peer_,
                                   tls.ok() ? errnoText(errnum) : tls.message());
  // Sending may fail before we have read what the target said last.
  ssize_t got = 0;
  while ((got = fd_.receive(in_.data(), in_.size())) > 0 || (got < 0 && errno == EINTR)) {
    if (got > 0) hear(in_.data(), static_cast<size_t>(got));
  }
  const bool fenced = isFenced() || (got == 0 && fd_.endIsSigned());
  sent(fd_.takeUncounted());
  // Nothing more will come, and what is still in our send buffer must not leave it.
  fd_.abandon();
  fd_.reset();
  end(why, fenced);
}

void OriginStream::close(const Status& why) {
  std::lock_guard lock(mutex_);
  if (why_.ok()) end(why, false);
  // One that ended by itself did so before its link has told the peer: counts from now on.
  if (fenceAt_ != Clock::time_point::max()) fenceAt_ = Clock::now() + fence_;
}

void OriginStream::end(const Status& why, bool fenced) {
  why_ = why;
  ended_.store(true, std::memory_order_release);
  sent(fd_.takeUncounted());
  size_t risky = 0;  // puts of which the target may have a byte
  for (uint64_t number = first_; number != end_; ++number) {
    Op& op = slot(number).op;
    const bool seen = number < next_ || (number == next_ && sent_ > 0);
    if (op.kind == OpKind::put && seen && !fenced) {
      ++risky;
      continue;
    }
    fail(op);
  }
  if (risky == 0) {
    first_ = next_ = end_;
    fd_.reset();
    return;
  }
  fenceAt_ = Clock::now() + fence_;
  if (target_.known()) lookAt_ = Clock::now() + kLookEvery;
  if (fd_) fd_.finishSending();
}

// Waits for the target's farewell: it has then applied whatever it ever will.
void OriginStream::discardAll() {
  while (fd_) {
    const ssize_t got = fd_.receive(in_.data(), in_.size());
    if (got > 0) hear(in_.data(), static_cast<size_t>(got));
    if (got > 0 || (got < 0 && errno == EINTR)) continue;
    if (isFenced() || (got == 0 && fd_.endIsSigned())) return failRest();
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    fd_.reset();  // no answer will come: expire() decides
  }
}

OriginStream::Clock::time_point OriginStream::fenceAt() const {
  std::lock_guard lock(mutex_);
  return std::min(fenceAt_, lookAt_);
}

bool OriginStream::expire() {
  std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (now < fenceAt_ && now < lookAt_) return false;
  if (now < fenceAt_ && !isFenced()) {
    lookAt_ = now + kLookEvery;
    return false;
  }
  // What is still in our send buffer must not leave it later.
  if (fd_) fd_.abandon();
  failRest();
  return true;
}

void OriginStream::failRest() {
  fd_.reset();
  fenceAt_ = lookAt_ = Clock::time_point::max();
  for (; first_ != end_; ++first_) fail(slot(first_).op);
  next_ = end_;
}

void OriginStream::fail(Op& op) {
  Completion* completion = std::exchange(op.completion, nullptr);
  if (completion == nullptr) return;
  ++finished_;
  completion->fail(why_);
}

}  // namespace hmc::tcp
