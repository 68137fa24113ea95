#include "transport/tcp/target.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/guarded_copy.h"

namespace hmc::tcp {

namespace {

// Stands for bytes that are no longer there to be sent: the request fails, the stream goes on.
const char kZeros[65536] = {};

bool again(int errnum) {
  return errnum == EAGAIN || errnum == EWOULDBLOCK;
}

}  // namespace

TargetStream::TargetStream(Connection connection, Exports& exports, Lease& lease,
                           std::string greeting, std::string farewell,
                           std::unique_ptr<Buffer>& spare, std::atomic<uint64_t>* altered)
    : connection_(std::move(connection)),
      exports_(exports),
      lease_(lease),
      farewell_(std::move(farewell)),
      altered_(altered),
      spare_(spare),
      out_(std::move(greeting)) {}

// Where the socket takes no more, the origin's lease decides.
TargetStream::~TargetStream() {
  (void)connection_.send(farewell_.data(), farewell_.size());
}

bool TargetStream::serve() {
  if (!in_) in_ = spare_ ? std::move(spare_) : std::make_unique<Buffer>();
  const bool goesOn = serveTurn();
  if (inUsed_ == inSize_) {
    inUsed_ = inSize_ = 0;
    spare_ = std::move(in_);
  }
  return goesOn;
}

bool TargetStream::serveTurn() {
  turnLeft_ = kTurn;
  drained_ = false;
  while (true) {
    if (!lease_.mayApply()) return false;
    // The turn ends where the socket will call again: nothing must wait in our own buffer.
    if (turnLeft_ == 0 && (sending_ || (!requestReady() && !connection_.buffered()))) {
      return flush() != Step::over;
    }
    const Step next = step();
    if (next != Step::more) return next == Step::wait;
  }
}

bool TargetStream::requestReady() const {
  const size_t have = inSize_ - inUsed_;
  return left_ == 0 && !putting_ && have >= Request::kSize &&
         isComplete(in_->data() + inUsed_, have);
}

// A small put is checked before any of it is placed, so all of it has to be there.
bool TargetStream::isComplete(const char* bytes, size_t have) const {
  if (!altered_ || !isSealed(bytes)) return true;
  const Request request = Request::unpack(bytes);
  return request.kind != static_cast<uint64_t>(RequestKind::put) || request.size > kCheckedFirst ||
         have >= Request::kSize + request.size + kTrailerSize;
}

TargetStream::Step TargetStream::step() {
  if (sending_) return sendData();
  const bool ready = requestReady();
  if (ready && out_.size() < in_->size()) return nextRequest() ? Step::more : Step::over;
  // Answers leave together, but before we wait for anything, and before the origin has to wait.
  if (ready || drained_ || unanswered_ >= kMostUnanswered) {
    if (Step flushed = flush(); flushed != Step::more) return flushed;
    unanswered_ = 0;
  }
  if (ready) return Step::more;
  // The last call emptied the socket: it will call again.
  if (std::exchange(drained_, false)) return Step::wait;
  return receive();
}

// False when the stream cannot go on.
bool TargetStream::nextRequest() {
  const char* const bytes = in_->data() + inUsed_;
  if (altered_ && !isSealed(bytes)) {
    countAltered();
    answer(ReplyKind::altered, 0);
    (void)flush();
    return false;
  }
  inUsed_ += Request::kSize;
  if (!begin(Request::unpack(bytes))) return false;
  takePut();
  return true;
}

// False when this cannot come from an honest peer.
bool TargetStream::begin(const Request& request) {
  const bool put = request.kind == static_cast<uint64_t>(RequestKind::put);
  if (!put && request.kind != static_cast<uint64_t>(RequestKind::get)) return false;
  if (request.size == 0 || request.size > kLargestRequest) return false;
  request_ = request;
  left_ = request.size;
  sum_ = 0;
  putting_ = put;
  unreadable_ = false;
  refusal_ = check(request);
  if (!refusal_.ok()) memory_.reset();
  if (put) return true;
  if (!memory_) {
    left_ = 0;
    finish();
    return true;
  }
  answer(ReplyKind::data, request.size);
  if (request.size <= kSmall) {
    copySmall();
    left_ = 0;
    finish();
  } else {
    sending_ = true;
  }
  return true;
}

// Small answers travel together: copied, they cost less than a system call each.
void TargetStream::copySmall() {
  const size_t at = out_.size();
  out_.append(request_.size, '\0');
  {
    const auto held = memory_->hold();
    if (!held) {
      refusal_ = gone();
    } else if (!readGuarded(out_.data() + at, memory_->region.at(request_.offset), request_.size)) {
      refusal_ = unusable();
    }
  }
  if (altered_) addTrailer(crc32c(0, out_.data() + at, request_.size));
}

Status TargetStream::check(const Request& request) {
  memory_ = exports_.find(request.region);
  return memory_ ? memory_->check(opKind(), request.offset, request.size) : gone();
}

OpKind TargetStream::opKind() const {
  return request_.kind == static_cast<uint64_t>(RequestKind::put) ? OpKind::put : OpKind::get;
}

Status TargetStream::gone() const {
  return Export::removed(opKind(), request_.size);
}

Status TargetStream::unusable() const {
  return unusableThere(opKind(), request_.offset, request_.size);
}

TargetStream::Step TargetStream::receive() {
  if (inUsed_ > 0) {
    inSize_ -= inUsed_;
    std::memmove(in_->data(), in_->data() + inUsed_, inSize_);
    inUsed_ = 0;
  }
  if (left_ > 0 && memory_ && refusal_.ok()) return receiveInPlace();
  const size_t room = in_->size() - inSize_;
  iovec piece{in_->data() + inSize_, room};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  return received(connection_.receive(message), room, 0);
}

TargetStream::Step TargetStream::receiveInPlace() {
  // Behind a put's bytes comes the next request, in the same call. Of its bytes only a few: they
  // are copied twice.
  // Nothing ready is met by receiving one byte: the end, an error, or that nothing has come.
  const size_t most = std::clamp(connection_.ready(), size_t{1}, kMostAtOnce);
  const size_t ahead = left_ > most ? 0 : std::min(in_->size() - inSize_, kLookAhead);
  iovec pieces[2] = {{memory_->region.at(request_.offset + request_.size - left_),
                      std::min<uint64_t>(left_, most)},
                     {in_->data() + inSize_, ahead}};
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = 2;
  auto held = memory_->hold();
  if (!held) {
    refusal_ = gone();
    memory_.reset();
    return Step::more;
  }
  // Here, and not only before answers were sent: on the way back from that call a process is
  // stopped most often.
  if (!lease_.mayApply()) return Step::over;
  const ssize_t got = connection_.receive(message);
  if (got < 0 && errno == EFAULT) {
    refusal_ = unusable();  // what is left of it goes nowhere
    return Step::more;
  }
  if (got > 0 && altered_) {
    sum_ = crc32c(sum_, pieces[0].iov_base, std::min(static_cast<size_t>(got), pieces[0].iov_len));
  }
  held.unlock();
  return received(got, pieces[0].iov_len + ahead, pieces[0].iov_len);
}

TargetStream::Step TargetStream::received(ssize_t got, size_t room, size_t roomInPlace) {
  if (got == 0) return Step::over;
  if (got < 0) {
    drained_ = again(errno);
    return drained_ || errno == EINTR ? Step::more : Step::over;
  }
  const size_t count = static_cast<size_t>(got);
  drained_ = count < room && !connection_.holdsBytes();
  unanswered_ += count;
  turnLeft_ -= std::min(turnLeft_, count);
  const size_t placed = std::min(roomInPlace, count);
  left_ -= placed;
  inSize_ += count - placed;
  takePut();
  return Step::more;
}

// Uses what in_ has of the put that is being served.
void TargetStream::takePut() {
  if (!putting_) return;
  if (const size_t have = std::min<uint64_t>(left_, inSize_ - inUsed_); have > 0) {
    const char* const bytes = in_->data() + inUsed_;
    if (altered_) sum_ = crc32c(sum_, bytes, have);
    if (altered_ && have == request_.size && have <= kCheckedFirst)
      verify(unpackTrailer(bytes + have));
    place(bytes, have);
    inUsed_ += have;
  }
  if (left_ > 0) return;
  if (altered_) {
    if (inSize_ - inUsed_ < kTrailerSize) return;
    verify(unpackTrailer(in_->data() + inUsed_));
    inUsed_ += kTrailerSize;
  }
  putting_ = false;
  finish();
}

void TargetStream::verify(uint32_t expected) {
  if (!refusal_.ok() || sum_ == expected) return;
  countAltered();
  refusal_ = error(Code::failed,
                   "put of {} bytes at remote offset {}: its bytes were altered on the way: their "
                   "CRC-32C is {:#010x} and was {:#010x}; try again",
                   request_.size, request_.offset, sum_, expected);
}

// Bytes of a put that came together with its request.
void TargetStream::place(const char* bytes, size_t size) {
  if (memory_ && refusal_.ok()) {
    const uint64_t done = request_.size - left_;
    const auto held = memory_->hold();
    if (!held) {
      refusal_ = gone();
    } else if (!writeGuarded(memory_->region.at(request_.offset + done), bytes, size)) {
      refusal_ = unusable();
    }
  }
  left_ -= size;
}

TargetStream::Step TargetStream::sendData() {
  auto held = memory_->hold();
  if (!held) refusal_ = gone();
  iovec pieces[2] = {{out_.data(), out_.size()}, {nullptr, left_}};
  const bool real = held && !unreadable_;
  if (real) {
    pieces[1].iov_base = memory_->region.at(request_.offset + request_.size - left_);
  } else {
    pieces[1] = {const_cast<char*>(kZeros), std::min<uint64_t>(left_, sizeof(kZeros))};
  }
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = 2;
  // Another answer follows at once, so the kernel need not send off a packet that is not full.
  const bool more = inSize_ - inUsed_ >= Request::kSize;
  const ssize_t count = connection_.send(message, more);
  const size_t answers = std::min(out_.size(), static_cast<size_t>(std::max<ssize_t>(count, 0)));
  if (count > 0 && altered_)
    sum_ = crc32c(sum_, pieces[1].iov_base, static_cast<size_t>(count) - answers);
  if (count < 0) {
    if (errno == EINTR) return Step::more;
    if (errno == EFAULT && real) {
      refusal_ = unusable();
      unreadable_ = true;
      return Step::more;
    }
    return again(errno) ? Step::wait : Step::over;
  }
  turnLeft_ -= std::min(turnLeft_, static_cast<size_t>(count));
  out_.erase(0, answers);
  left_ -= static_cast<size_t>(count) - answers;
  if (left_ > 0) return Step::more;
  if (held) held.unlock();
  if (altered_) addTrailer(sum_);
  finish();
  return Step::more;
}

void TargetStream::finish() {
  sending_ = false;
  memory_.reset();
  answer(refusal_.ok() ? ReplyKind::done : ReplyKind::refused, 0, refusal_);
}

void TargetStream::answer(ReplyKind kind, uint64_t size, const Status& refusal) {
  const std::string sentence = refusal.message().substr(0, kLongestSentence);
  Reply reply{static_cast<uint32_t>(kind), static_cast<uint32_t>(refusal.code()), request_.id,
              kind == ReplyKind::refused ? sentence.size() : size};
  char bytes[Reply::kSize];
  reply.pack(bytes);
  if (altered_) seal(bytes);
  out_.append(bytes, sizeof(bytes));
  if (kind != ReplyKind::refused) return;
  out_.append(sentence);
  if (altered_) addTrailer(crc32c(0, sentence.data(), sentence.size()));
}

void TargetStream::addTrailer(uint32_t crc) {
  char bytes[kTrailerSize];
  packTrailer(crc, bytes);
  out_.append(bytes, sizeof(bytes));
}

TargetStream::Step TargetStream::flush() {
  while (!out_.empty()) {
    const ssize_t count = connection_.send(out_.data(), out_.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      return again(errno) ? Step::wait : Step::over;
    }
    out_.erase(0, static_cast<size_t>(count));
  }
  return Step::more;
}

}  // namespace hmc::tcp
