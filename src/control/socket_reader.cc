#include "control/socket_reader.h"

namespace hmc::control {

namespace {
constexpr size_t kLookSize = size_t{16} << 10;
}

SocketReader::SocketReader(Inbox& inbox, std::shared_ptr<Lease> lease, Loop::Task handOver,
                           Loop::Task guard)
    : inbox_(inbox),
      lease_(std::move(lease)),
      handOver_(std::move(handOver)),
      guard_(std::move(guard)) {}

bool SocketReader::look() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || turn_ != Turn::anybody || !watch_) return false;
  ++looks_;
  if (watch_->wants(EPOLLIN) && resting_.load() == 0) ignoreSocket();
  char bytes[kLookSize];
  Moved moved = stream_->read(bytes, sizeof(bytes));
  bool over = moved.ended || moved.errnum != 0;
  if (moved.bytes == 0 && !over) return true;
  // Every byte is a sign of life. One that comes too late is the control thread's to judge.
  bool late = !over && !lease_->hear();
  frames_.feed({bytes, moved.bytes});
  if (!over && !late && takeMessages()) return true;
  turn_ = Turn::control;
  handed_ = true;
  lock.unlock();
  handOver_();
  return true;
}

// False when there is something that is not ours to take, which is then still there.
bool SocketReader::takeMessages() {
  for (;;) {
    auto next = frames_.next();
    if (!next.ok()) return false;
    if (!*next) return true;
    const Frame& frame = **next;
    auto kind = static_cast<MessageKind>(frame.detail);
    if (isMine(frame) && inbox_.push({kind, frame.flags, std::string(frame.payload)}).ok())
      continue;
    frames_.putBack();
    return false;
  }
}

bool SocketReader::isMine(const Frame& frame) const {
  return frame.type == FrameType::message && frame.payload.size() <= kLargestMessage &&
         frame.detail < static_cast<uint8_t>(MessageKind::note);
}

void SocketReader::ignoreSocket() {
  watch_->ignore(EPOLLIN);
  if (guarded_) return;
  guarded_ = true;
  looksSeen_ = looks_;
  guard_();
}

void SocketReader::rest() {
  ++resting_;
  std::lock_guard lock(mutex_);
  if (watch_) watch_->want(EPOLLIN);
}

void SocketReader::begin(ByteStream& stream, Loop::Watch* watch) {
  std::lock_guard lock(mutex_);
  stream_ = &stream;
  watch_ = watch;
  turn_ = Turn::anybody;
}

bool SocketReader::take() {
  std::lock_guard lock(mutex_);
  turn_ = Turn::control;
  return std::exchange(handed_, false);
}

void SocketReader::giveBack() {
  std::lock_guard lock(mutex_);
  turn_ = Turn::anybody;
}

void SocketReader::keep() {
  std::lock_guard lock(mutex_);
  turn_ = Turn::control;
  if (watch_) watch_->want(EPOLLIN);
}

void SocketReader::stop() {
  std::lock_guard lock(mutex_);
  turn_ = Turn::control;
  stream_ = nullptr;
  watch_ = nullptr;
}

bool SocketReader::stillRead() {
  std::lock_guard lock(mutex_);
  bool read = watch_ && !watch_->wants(EPOLLIN) && looks_ != looksSeen_;
  looksSeen_ = looks_;
  guarded_ = read;
  if (watch_ && !read) watch_->want(EPOLLIN);
  return read;
}

}  // namespace hmc::control
