#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/lease.h"
#include "model/choices.h"
#include "model/simulated_host.h"
#include "transport/counters.h"
#include "transport/exports.h"
#include "transport/tcp/origin.h"
#include "transport/tcp/target.h"

namespace hmc::model {

// How far the search goes, and what is broken on purpose.
struct Rules {
  std::chrono::milliseconds originLease{2};
  std::chrono::milliseconds targetLease{2};
  int ticks = 3;  // of a millisecond each
  int beats = 1;  // of the target's
  int strangers = 0;
  int stops = 0;  // of the target's process inside a system call
  bool restarts = false;

  bool targetIgnoresTheLease = false;
  bool anEndIsBelieved = false;  // a FIN or RST counts as the target's farewell
  bool eachSideHasItsOwnLease = false;
  bool whatIsHeardRenews = false;  // also when it was said long ago
  bool theEndOfALinkIsNotSaid = false;
  bool stopsBetweenLookAndReceive = false;
};

// What a control connection carries, in order.
struct Word {
  enum class Kind { ping, pong, linkEnded, bye };
  Kind kind;
  uint64_t number = 0;
};

// One origin and one target process, with a tcp stream and a control connection. OriginStream,
// TargetStream, Exports and Lease are the library's; what the control connection does with a lease
// is as in ChannelImpl. A process is stopped, and a network cut or slow, when its actions are not
// chosen.
class FenceWorld {
 public:
  FenceWorld(const Rules& rules, Choices& choices);
  ~FenceWorld();

  enum class Action {
    post,
    cancel,
    giveUpThePeer,
    pumpOrigin,
    hearAtOrigin,
    serveTarget,
    lookAtTarget,  // Service reads the stream that was busy last before it asks for events
    hearAtTarget,
    beat,
    deliverToTarget,
    deliverToOrigin,
    tick,
    endAtOrigin,
    resetAtOrigin,
    endAtTarget,
    resetAtTarget,
    restartTarget,
    useTheOldHandle,
    kCount
  };
  std::vector<uint8_t> possible() const;
  // What went wrong, empty when nothing did.
  std::string take(Action action);
  // The target does nothing any more: everything ends. As take().
  std::string settle();
  // The same for states that go on in the same way.
  std::string fingerprint() const;

  static const char* name(Action action);
  // What was written after the fence.
  size_t lateBytes() const { return late_; }

 private:
  static constexpr size_t kPuts = 1;
  static constexpr size_t kSize = 64;
  struct Put {
    std::unique_ptr<Completion> completion;
    std::string source;
    std::optional<std::string> atItsEnd;  // the target's memory then
  };
  using Time = Lease::Clock::time_point;
  static constexpr int64_t kTick = 1000000;  // nanoseconds

  bool isPossible(Action action) const;
  bool canSend() const;
  void connect();
  void tick();
  void pumpOrigin();
  void hearAtOrigin();
  void hearAtTarget();
  void beat();
  void serve(bool lookAtEvents);
  void endLink();
  void endChannelAtOrigin();
  void endChannelAtTarget();
  void restart();
  void useTheOldHandle();
  void stopTarget();
  void observe();
  std::string violation();
  Op op(Put& put, size_t index);

  const Rules rules_;
  Choices& choices_;
  SimulatedHost host_;
  std::string memory_ = std::string(kPuts * kSize, '.');
  std::vector<Put> puts_;
  std::unique_ptr<tcp::TcpRemote> handle_;
  Status what_;
  std::string wrong_;
  size_t late_ = 0;

  Wire toTarget_, toOrigin_;
  Socket originSocket_, targetSocket_;
  TransportCounters counters_;
  std::unique_ptr<tcp::OriginStream> origin_;
  bool endSaid_ = false;
  bool originTalks_ = true;
  std::deque<Word> saidToTarget_, saidToOrigin_;

  std::unique_ptr<Exports> exports_ = std::make_unique<Exports>();
  std::unique_ptr<tcp::TargetStream::Buffer> spare_;
  std::unique_ptr<tcp::TargetStream> target_;
  std::unique_ptr<Lease> lease_;  // the target's
  bool targetTalks_ = true;
  uint64_t probes_ = 0;
  uint64_t timedProbe_ = 0;
  Time timedAt_{};
  // For the fingerprint.
  Time heardAt_{}, confirmedAt_{};

  int ticks_ = 0, strangers_ = 0, stops_ = 0;
  std::optional<std::string> memoryAtRestart_;
};

}  // namespace hmc::model
