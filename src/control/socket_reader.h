#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "base/lease.h"
#include "base/loop.h"
#include "control/byte_stream.h"
#include "control/frame.h"
#include "control/inbox.h"

namespace hmc::control {

// Who reads a channel's socket. It is the control thread's business, except that a thread which
// waits for a message may do it in its place for a moment: to wake the one and then the other takes
// several times as long as the message itself. Such a thread takes messages and nothing else; from
// the first other word on, and at every problem, it leaves the rest to the control thread, which
// therefore meets all of them, in order. While threads look, the loop does not watch the socket,
// and the control thread sleeps.
//
// The turn: whoever has it alone touches the stream and the frames. A user's thread has it only
// inside look(); the control thread from take() to giveBack().
class SocketReader final : public MessageSource {
 public:
  // `handOver` and `guard` may be called from any thread, and ask the control thread: to take over
  // now; to call stillRead() every few milliseconds until it answers false.
  SocketReader(Inbox& inbox, std::shared_ptr<Lease> lease, Loop::Task handOver, Loop::Task guard);

  // Any thread.
  bool look() override;
  void rest() override;
  void resume() override { --resting_; }

  // All below are the control thread's. Before begin() and after stop() nobody else reads.
  // `watch` tells the control thread when to read; null where messages come through a ring, and no
  // other thread reads.
  void begin(ByteStream& stream, Loop::Watch* watch);
  // Answers whether a user's thread left frames unhandled.
  bool take();
  void giveBack();
  // For good: keep() goes on reading, stop() does not.
  void keep();
  void stop();
  // False when nobody has looked since the last time; then the control thread reads again.
  bool stillRead();
  FrameReader& frames() { return frames_; }  // with the turn

 private:
  enum class Turn { anybody, control };
  bool takeMessages();
  bool isMine(const Frame& frame) const;
  void ignoreSocket();

  Inbox& inbox_;
  const std::shared_ptr<Lease> lease_;
  const Loop::Task handOver_;
  const Loop::Task guard_;
  // Threads that sleep until the control thread has read something: while there are any, the loop
  // watches the socket. Each counts itself before it asks for that, and who stops it looks here
  // first, both under the lock.
  std::atomic<int> resting_{0};

  // Guards everything below, but not what belongs to the control thread while it has the turn.
  std::mutex mutex_;
  Turn turn_ = Turn::control;
  ByteStream* stream_ = nullptr;
  Loop::Watch* watch_ = nullptr;
  FrameReader frames_{kLargestFrame};
  bool handed_ = false;
  bool guarded_ = false;
  uint64_t looks_ = 0;
  uint64_t looksSeen_ = 0;
};

}  // namespace hmc::control
