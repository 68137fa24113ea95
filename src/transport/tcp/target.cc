#include "transport/tcp/target.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

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
                           std::unique_ptr<Buffer>& spare)
    : connection_(std::move(connection)),
      exports_(exports),
      lease_(lease),
      farewell_(std::move(farewell)),
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
  return left_ == 0 && inSize_ - inUsed_ >= Request::kSize;
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

bool TargetStream::nextRequest() {
  const Request request = Request::unpack(in_->data() + inUsed_);
  inUsed_ += Request::kSize;
  if (!begin(request)) return false;
  if (left_ > 0 && !sending_) {
    const size_t have = std::min<uint64_t>(left_, inSize_ - inUsed_);
    place(in_->data() + inUsed_, have);
    inUsed_ += have;
  }
  return true;
}

// False when this cannot come from an honest peer.
bool TargetStream::begin(const Request& request) {
  const bool put = request.kind == static_cast<uint64_t>(RequestKind::put);
  if (!put && request.kind != static_cast<uint64_t>(RequestKind::get)) return false;
  if (request.size == 0 || request.size > kLargestRequest) return false;
  request_ = request;
  left_ = request.size;
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
  const auto held = memory_->hold();
  if (held) {
    out_.append(memory_->region.at(request_.offset), request_.size);
  } else {
    refusal_ = gone();
    out_.append(request_.size, '\0');
  }
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

TargetStream::Step TargetStream::receive() {
  if (inUsed_ > 0) {
    inSize_ -= inUsed_;
    std::memmove(in_->data(), in_->data() + inUsed_, inSize_);
    inUsed_ = 0;
  }
  // Behind a put's bytes comes the next request, in the same call. Of its bytes only a few: they
  // are copied twice.
  iovec pieces[2] = {{nullptr, 0}, {in_->data() + inSize_, in_->size() - inSize_}};
  msghdr message{};
  message.msg_iov = pieces + 1;
  message.msg_iovlen = 1;
  if (left_ == 0 || !memory_) {
    return received(connection_.receive(message), pieces[1].iov_len);
  }

  message.msg_iov = pieces;
  message.msg_iovlen = 2;
  pieces[0] = {memory_->region.at(request_.offset + request_.size - left_),
               std::min<uint64_t>(left_, kMostAtOnce)};
  pieces[1].iov_len = left_ > kMostAtOnce ? 0 : std::min(pieces[1].iov_len, kLookAhead);
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
  held.unlock();
  return received(got, pieces[0].iov_len + pieces[1].iov_len);
}

TargetStream::Step TargetStream::received(ssize_t got, size_t room) {
  if (got == 0) return Step::over;
  if (got < 0) {
    drained_ = again(errno);
    return drained_ || errno == EINTR ? Step::more : Step::over;
  }
  size_t count = static_cast<size_t>(got);
  drained_ = count < room;
  unanswered_ += count;
  turnLeft_ -= std::min(turnLeft_, count);
  if (left_ > 0 && memory_) {
    const size_t placed = std::min<uint64_t>(left_, count);
    left_ -= placed;
    count -= placed;
    if (left_ == 0) finish();
  }
  inSize_ += count;
  if (left_ > 0 && !memory_) {
    const size_t drained = std::min<uint64_t>(left_, inSize_);
    inUsed_ = drained;
    left_ -= drained;
    if (left_ == 0) finish();
  }
  return Step::more;
}

// Bytes of a put that came together with its request.
void TargetStream::place(const char* bytes, size_t size) {
  if (memory_) {
    const uint64_t done = request_.size - left_;
    const auto held = memory_->hold();
    if (held) {
      std::memcpy(memory_->region.at(request_.offset + done), bytes, size);
    } else {
      refusal_ = gone();
    }
  }
  left_ -= size;
  if (left_ == 0) finish();
}

TargetStream::Step TargetStream::sendData() {
  auto held = memory_->hold();
  if (!held) refusal_ = gone();
  iovec pieces[2] = {{out_.data(), out_.size()}, {nullptr, left_}};
  if (held) {
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
  if (held) held.unlock();
  if (count < 0) {
    if (errno == EINTR) return Step::more;
    return again(errno) ? Step::wait : Step::over;
  }
  turnLeft_ -= std::min(turnLeft_, static_cast<size_t>(count));
  const size_t answers = std::min(out_.size(), static_cast<size_t>(count));
  out_.erase(0, answers);
  left_ -= static_cast<size_t>(count) - answers;
  if (left_ == 0) finish();
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
  out_.append(bytes, sizeof(bytes));
  if (kind == ReplyKind::refused) out_.append(sentence);
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
