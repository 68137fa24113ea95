#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/fd_exchange.h"
#include "control/control.h"

namespace hmc::control::test {

inline constexpr std::chrono::seconds kPatience{30};
// A call that is answered by Events::answerLater().
inline constexpr uint16_t kLater = 1000;
// How often a tag goes back and forth, for which two threads wake each other. Less often with
// sanitizers, where 20,000 times took up to 35 s.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kRoundTrips = 5000;
#else
inline constexpr int kRoundTrips = 20000;
#endif
inline const char* const kAnyPort = "tcp://127.0.0.1:0";

// Remembers what happened and lets a test wait for it.
class Events : public ControlEvents {
 public:
  Status joined(const std::shared_ptr<Channel>& channel) override {
    std::lock_guard lock(mutex_);
    joined_.push_back(channel);
    changed_.notify_all();
    return refusal_;
  }
  Status joinedAgain(const std::shared_ptr<Channel>& channel,
                     const std::string& attributes) override {
    std::lock_guard lock(mutex_);
    again_.emplace_back(channel, attributes);
    changed_.notify_all();
    return refusal_;
  }
  void left(const std::shared_ptr<Channel>& channel, const Status& why) override {
    std::lock_guard lock(mutex_);
    left_.emplace_back(channel, why);
    changed_.notify_all();
  }
  void answer(const std::shared_ptr<Channel>&, uint16_t method, std::string_view request,
              Channel::Answered reply) override {
    if (method == 404) return reply(error(Code::notFound, "no method {}", method));
    if (method == 999) return reply(std::string(kLargestMessage + 1, 'x'));
    std::string text = std::string(request) + "/" + std::to_string(method);
    if (method == kLater) {
      std::lock_guard lock(mutex_);
      later_.emplace_back(std::move(reply), std::move(text));
      changed_.notify_all();
      return;
    }
    reply(std::move(text));
  }
  void note(const std::shared_ptr<Channel>&, std::string payload) override {
    std::lock_guard lock(mutex_);
    notes_.push_back(std::move(payload));
    changed_.notify_all();
  }

  void refuseWith(Status status) {
    std::lock_guard lock(mutex_);
    refusal_ = std::move(status);
  }

  // Waits until `count` channels have joined and answers the last of them.
  std::shared_ptr<Channel> waitJoined(size_t count = 1) {
    waitFor([&] { return joined_.size() >= count; });
    std::lock_guard lock(mutex_);
    return joined_.size() >= count ? joined_[count - 1] : nullptr;
  }
  // Waits until `count` have left and answers the last one's reason.
  Status waitLeft(size_t count = 1) {
    waitFor([&] { return left_.size() >= count; });
    std::lock_guard lock(mutex_);
    return left_.size() >= count ? left_[count - 1].second : error(Code::failed, "nobody left");
  }
  // Answers the calls of kLater, once there are so many, the last one first.
  bool answerLater(size_t count) {
    if (!waitFor([&] { return later_.size() >= count; })) return false;
    std::lock_guard lock(mutex_);
    for (auto one = later_.rbegin(); one != later_.rend(); ++one) one->first(one->second);
    return true;
  }
  bool waitNotes(size_t count) {
    return waitFor([&] { return notes_.size() >= count; });
  }
  size_t joinedCount() const { return count(joined_); }
  size_t leftCount() const { return count(left_); }
  std::vector<std::string> notes() const {
    std::lock_guard lock(mutex_);
    return notes_;
  }
  std::vector<std::pair<std::shared_ptr<Channel>, std::string>> again() const {
    std::lock_guard lock(mutex_);
    return again_;
  }

 private:
  bool waitFor(const std::function<bool()>& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, condition);
  }
  template <class T>
  size_t count(const T& list) const {
    std::lock_guard lock(mutex_);
    return list.size();
  }

  // Guards everything below.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Status refusal_;
  std::vector<std::shared_ptr<Channel>> joined_;
  std::vector<std::pair<std::shared_ptr<Channel>, std::string>> again_;
  std::vector<std::pair<std::shared_ptr<Channel>, Status>> left_;
  std::vector<std::string> notes_;
  std::vector<std::pair<Channel::Answered, std::string>> later_;
};

// One participant: a Control with its exchange and a record of its events.
struct TestPeer {
  explicit TestPeer(const std::string& name, const std::string& secret = "") {
    ControlOptions options;
    options.name = name;
    options.secret = secret;
    options.insecure = true;
    make(options);
  }
  explicit TestPeer(const ControlOptions& options) { make(options); }

  std::string listen(const std::string& address = kAnyPort) {
    auto result = control->listen(address);
    return result.ok() ? *result : "error: " + result.status().toString();
  }
  Result<std::shared_ptr<Channel>> connect(const std::string& address,
                                           const std::string& attributes = "") {
    return control->connect(address, attributes, kPatience);
  }

  std::unique_ptr<FdExchange> fds;
  Events events;
  std::unique_ptr<Control> control;

 private:
  void make(const ControlOptions& options) {
    fds = *FdExchange::create();
    control = *Control::create(options, *fds, events);
  }
};

inline Status sendTag(Channel& channel, const std::string& text) {
  return channel.send(MessageKind::tag, 0, text, kPatience);
}
inline std::string receiveText(Channel& channel, MessageKind kind) {
  auto message = channel.receive(kind, kPatience);
  return message.ok() ? message->payload : "error: " + message.status().toString();
}

// Waits until both sides of a channel on one host use the ring: the acceptor's marker has come when
// a tag that was sent after it has. Harmless without a ring.
inline void settle(Channel& a, Channel& b) {
  sendTag(a, "settle");
  receiveText(b, MessageKind::tag);
  sendTag(b, "settle");
  receiveText(a, MessageKind::tag);
}

// Sends, receives and calls on one end of a channel, each in a thread, until it is over.
inline void startTraffic(const std::shared_ptr<Channel>& end, std::vector<std::jthread>& threads) {
  threads.emplace_back([end] {
    while (end->send(MessageKind::tag, 0, std::string(3000, 'x'), kPatience).ok()) {
    }
  });
  threads.emplace_back([end] {
    while (end->receive(MessageKind::tag, kPatience).ok()) {
    }
  });
  threads.emplace_back([end] {
    while (end->call(1, "x", kPatience).ok()) {
    }
  });
}

}  // namespace hmc::control::test
