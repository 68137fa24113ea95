#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/guarded_copy.h"
#include "transport/check.h"
#include "transport/tcp/origin.h"

// What an OriginStream sends and what it makes of the answers: wire.h.
namespace hmc::tcp {

namespace {

// Goes out in the place of memory that cannot be read: the put fails, the stream goes on.
const char kNothing[65536] = {};
// No memory has this number, so the target refuses what is asked of it.
constexpr uint64_t kNoRegion = 0;

bool isReadable(const Op& op) {
  char read[16384];
  for (size_t at = 0; at < op.size; at += sizeof(read)) {
    const size_t step = std::min(op.size - at, sizeof(read));
    if (!readGuarded(read, static_cast<const char*>(op.local) + at, step)) return false;
  }
  return true;
}

}  // namespace

// The checksum of a small put is known before it leaves, that of a larger one when all of it has.
Status OriginStream::prepare(Slot& s, uint64_t number) {
  const Op& op = s.op;
  const bool put = op.kind == OpKind::put;
  s.failure = Status();
  s.follows = put ? op.size : 0;
  const auto kind = put ? RequestKind::put : RequestKind::get;
  Request{static_cast<uint64_t>(kind), number, static_cast<const TcpRemote*>(op.remote)->region,
          op.remoteOffset, op.size}
      .pack(s.header);
  if (!checked_) return Status();
  seal(s.header);
  if (!put || op.size > kCheckedFirst) return Status();
  char bytes[kCheckedFirst];
  if (!readGuarded(bytes, op.local, op.size)) return unusableHere(op.kind, op.local, op.size);
  packTrailer(crc32c(0, bytes, op.size), trailers_[number % kWindow].data());
  return Status();
}

size_t OriginStream::wireSize(const Slot& s) const {
  return Request::kSize + s.follows + (checked_ && s.follows > 0 ? kTrailerSize : 0);
}

// The unsent bytes from the greeting on, straight from the callers' memory. `more`: others follow
// these at once.
size_t OriginStream::gather(iovec* pieces, size_t most, bool& more) {
  size_t count = 0;
  if (!greeting_.empty()) pieces[count++] = {greeting_.data(), greeting_.size()};
  size_t skip = sent_;
  for (uint64_t number = next_; number != end_ && count + 3 <= most; ++number) {
    Slot& s = slot(number);
    if (skip < Request::kSize) {
      pieces[count++] = {s.header + skip, Request::kSize - skip};
      skip = Request::kSize;
    }
    size_t done = std::exchange(skip, 0) - Request::kSize;
    if (s.follows == 0) continue;
    if (const size_t left = s.follows - std::min(done, s.follows); left > 0) {
      const bool lost = !s.failure.ok();
      pieces[count++] = lost ? iovec{const_cast<char*>(kNothing), std::min(left, sizeof(kNothing))}
                             : iovec{static_cast<char*>(s.op.local) + done, left};
      // The rest of nothing, or the checksum, is next.
      more = more || (lost && left > sizeof(kNothing)) || (checked_ && s.follows > kCheckedFirst);
      if (lost || (checked_ && s.follows > kCheckedFirst)) return count;
      done = s.follows;
    }
    if (checked_) {
      const size_t passed = done - s.follows;
      pieces[count++] = {trailers_[number % kWindow].data() + passed, kTrailerSize - passed};
    }
  }
  return count;
}

void OriginStream::sent(size_t count) {
  const size_t ofGreeting = std::min(count, greeting_.size());
  greeting_.erase(0, ofGreeting);
  if (greeting_.empty() && !up()) setUp();
  count -= ofGreeting;
  while (next_ != end_ && count > 0) {
    const Slot& s = slot(next_);
    const size_t step = std::min(count, wireSize(s) - sent_);
    if (checked_ && s.follows > kCheckedFirst) addToChecksum(s, sent_, sent_ + step);
    sent_ += step;
    count -= step;
    if (sent_ < wireSize(s)) return;
    sent_ = 0;
    ++next_;
  }
}

// Those bytes of the request have left. The kernel has just read them, so they can be read.
void OriginStream::addToChecksum(const Slot& s, size_t from, size_t to) {
  constexpr size_t kBegin = Request::kSize;
  const size_t end = kBegin + s.follows;
  if (from >= end || to <= kBegin) return;
  from = std::max(from, kBegin) - kBegin;
  to = std::min(to, end) - kBegin;
  if (from == 0) sum_ = 0;
  const char* bytes = s.failure.ok() ? static_cast<const char*>(s.op.local) + from : kNothing;
  sum_ = crc32c(sum_, bytes, to - from);
  if (to == s.follows) packTrailer(sum_, trailers_[next_ % kWindow].data());
}

void OriginStream::sendAll(bool more) {
  while (fd_ && (next_ != end_ || !greeting_.empty())) {
    iovec pieces[64];
    msghdr message{};
    message.msg_iov = pieces;
    bool goesOn = more;
    message.msg_iovlen = gather(pieces, std::size(pieces), goesOn);
    const ssize_t count = fd_.send(message, goesOn);
    if (count >= 0) {
      corked_ = more;
      sent(static_cast<size_t>(count));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno == EFAULT && blameUnreadable()) {
      continue;
    } else if (errno != EINTR) {
      return broken("sending to", errno);
    }
  }
}

// Some put's memory cannot be read: those of which that is so fail, and the others go on. Of one
// that has begun the rest goes out as zeros, because its header is on its way; of another only a
// request that the target refuses, because answers come in order. False when none is found.
bool OriginStream::blameUnreadable() {
  bool found = false;
  for (uint64_t number = next_; number != end_; ++number) {
    Slot& s = slot(number);
    const Op& op = s.op;
    if (op.kind != OpKind::put || !s.failure.ok() || isReadable(op)) continue;
    found = true;
    s.failure = unusableHere(op.kind, op.local, op.size);
    if (number == next_ && sent_ > 0) continue;
    s.follows = 0;
    Request{static_cast<uint64_t>(RequestKind::get), number, kNoRegion, 0, op.size}.pack(s.header);
    if (checked_) seal(s.header);
  }
  return found;
}

void OriginStream::receiveAll(bool over) {
  while (fd_) {
    const size_t wanted = payload_ ? payloadLeft_ : 0;
    iovec pieces[2] = {{payload_, wanted}, {in_.data() + inSize_, in_.size() - inSize_}};
    msghdr message{};
    message.msg_iov = wanted > 0 ? pieces : pieces + 1;
    message.msg_iovlen = wanted > 0 ? 2 : 1;
    const size_t room = wanted + in_.size() - inSize_;
    const ssize_t got = fd_.receive(message);
    if (got == 0) return broken("hearing from", 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      if (errno == EFAULT && wanted > 0) {
        discardPayload();
        continue;
      }
      return broken("hearing from", errno);
    }
    const size_t placed = std::min(static_cast<size_t>(got), wanted);
    hear(payload_, placed);
    hear(in_.data() + inSize_, static_cast<size_t>(got) - placed);
    if (checked_) payloadSum_ = crc32c(payloadSum_, payload_, placed);
    if (wanted > 0) payload_ += placed;
    payloadLeft_ -= placed;
    inSize_ += static_cast<size_t>(got) - placed;
    if (Status status = digest(); !status.ok()) return end(status, false);
    // Less than there is room for: the socket is empty, or the memory ends there.
    if (static_cast<size_t>(got) < room && placed == wanted && !over) return;
  }
}

// The first get's memory cannot be written: the rest of its bytes goes nowhere.
void OriginStream::discardPayload() {
  Slot& s = slot(first_);
  s.failure = unusableHere(s.op.kind, s.op.local, s.op.size);
  payload_ = nullptr;
}

void OriginStream::place(const char* bytes, size_t size) {
  if (checked_) payloadSum_ = crc32c(payloadSum_, bytes, size);
  if (payload_ && !writeGuarded(payload_, bytes, size)) discardPayload();
  if (payload_) payload_ += size;
  payloadLeft_ -= size;
}

// Uses up the complete answers in in_, and of a get's bytes whatever is there.
Status OriginStream::digest() {
  size_t used = 0;
  Status broken;
  while (used < inSize_) {
    const size_t step = digestOne(in_.data() + used, inSize_ - used, broken);
    if (!broken.ok()) return broken;
    if (step == 0) break;
    used += step;
  }
  inSize_ -= used;
  std::memmove(in_.data(), in_.data() + used, inSize_);
  return Status();
}

// How many of the bytes it could use; 0 when more have to come.
size_t OriginStream::digestOne(const char* bytes, size_t have, Status& broken) {
  if (payloadLeft_ > 0) {
    const size_t size = std::min(have, payloadLeft_);
    place(bytes, size);
    return size;
  }
  if (trailerDue_) {
    if (have < kTrailerSize) return 0;
    trailerDue_ = false;
    checkPayload(unpackTrailer(bytes));
    return kTrailerSize;
  }
  if (have < Reply::kSize) return 0;
  if (checked_ && !isSealed(bytes)) {
    counters_.altered.fetch_add(1, std::memory_order_relaxed);
    broken = error(Code::disconnected,
                   "an answer of {} was altered on the way: its header does not fit its checksum, "
                   "and what follows cannot be told apart; connect again",
                   peer_);
    return 0;
  }
  const Reply reply = Reply::unpack(bytes);
  if (reply.kind == static_cast<uint32_t>(ReplyKind::refused))
    return digestRefusal(reply, bytes + Reply::kSize, have - Reply::kSize, broken);
  broken = answer(reply);
  return Reply::kSize;
}

size_t OriginStream::digestRefusal(const Reply& reply, const char* sentence, size_t have,
                                   Status& broken) {
  if (reply.size > kLongestSentence || reply.id != first_ || first_ == next_) {
    broken = error(Code::disconnected, "{} broke the protocol with a refusal", peer_);
    return 0;
  }
  const size_t size = reply.size + (checked_ ? kTrailerSize : 0);
  if (have < size) return 0;
  const Code code = reply.code > 0 && reply.code <= static_cast<uint32_t>(Code::failed)
                        ? static_cast<Code>(reply.code)
                        : Code::failed;
  if (checked_) {
    payloadSum_ = crc32c(0, sentence, reply.size);
    checkPayload(unpackTrailer(sentence + reply.size));
  }
  endFirst(Status(code, std::string(sentence, reply.size)));
  return Reply::kSize + size;
}

Status OriginStream::answer(const Reply& reply) {
  const bool due = first_ != next_ && reply.id == first_;
  const Op* op = due ? &slot(first_).op : nullptr;
  const bool get = due && op->kind == OpKind::get;
  if (reply.kind == static_cast<uint32_t>(ReplyKind::data) && get && !payloadCame_ &&
      reply.size == op->size) {
    payload_ = static_cast<char*>(op->local);
    payloadLeft_ = op->size;
    payloadSum_ = 0;
    trailerDue_ = checked_;
    payloadCame_ = true;
    return Status();
  }
  if (reply.kind == static_cast<uint32_t>(ReplyKind::done) && due && get == payloadCame_) {
    endFirst(Status());
    return Status();
  }
  if (checked_ && reply.kind == static_cast<uint32_t>(ReplyKind::altered)) {
    return error(
        Code::disconnected,
        "a request to {} was altered on the way: its header does not fit its checksum, and "
        "what follows cannot be told apart; connect again",
        peer_);
  }
  return error(Code::disconnected, "{} broke the protocol with an answer of kind {:#x}", peer_,
               reply.kind);
}

void OriginStream::checkPayload(uint32_t expected) {
  if (payloadSum_ == expected) return;
  counters_.altered.fetch_add(1, std::memory_order_relaxed);
  Slot& s = slot(first_);
  if (!s.failure.ok()) return;
  s.failure =
      error(Code::failed,
            "{} of {} bytes: what {} answered was altered on the way: its CRC-32C is {:#010x} "
            "and was {:#010x}; try again",
            s.op.kind == OpKind::put ? "put" : "get", s.op.size, peer_, payloadSum_, expected);
}

}  // namespace hmc::tcp
