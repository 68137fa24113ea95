#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/fork_guard.h"
#include "hmc/deadline.h"
#include "hmc/result.h"
#include "store/etcd/http.h"
#include "store/etcd/messages.h"

namespace hmc::store::etcd {

// The members of an etcd: one of them is asked, and the next when that one cannot answer. Knows the
// user's token. Safe from any thread.
class Gateway {
 public:
  // Returns when a member has answered.
  static Result<std::unique_ptr<Gateway>> open(const std::string& url, const std::string& password,
                                               Deadline deadline);
  ~Gateway() { close(); }
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  const std::string& prefix() const { return address_.prefix; }
  const ForkGuard& fork() const { return fork_; }
  // Ends everything with `cancelled`.
  void close();

  // Whether a request may be sent again when its answer is lost.
  enum class Repeat { no, yes };
  // A member that is silent for so long is left for another, which is given twice the time. What
  // may not be repeated is given longer than etcd itself takes to give up.
  static constexpr std::chrono::seconds kAttempt{2};
  static constexpr std::chrono::seconds kOnlyAttempt{8};
  // The answer. What etcd refuses is the Status that Refusal has for it.
  Result<std::string> call(const char* path, const std::string& body, Repeat repeat,
                           Deadline deadline, std::chrono::milliseconds attempt = kAttempt);
  // Sends it once and waits for nothing.
  void post(const char* path, const std::string& body, Deadline deadline,
            std::function<void()> ended);

  // A member, as it was in use at one time.
  struct Member {
    size_t index = 0;
    uint64_t breaks = 0;
    std::string token;
  };
  Member member() const;
  // Tells of all changes from the revision on, until `answered` says false or the stream breaks.
  // Both functions are called on the thread hmc-etcd. Answers a number for cancel().
  uint64_t watch(const Member& member, const Range& range, int64_t revision, Deadline deadline,
                 std::function<bool(WatchAnswer)> answered,
                 std::function<void(const Status&)> ended);
  void cancel(uint64_t id) { http_->cancel(id); }

  // It does not serve: the next one is used from now on.
  void leave(const Member& member);
  // How often a member had to be left.
  uint64_t breaks() const;
  // Did the last one that was asked answer?
  bool inReach() const;
  // True when it is time to end.
  bool pause(Deadline until);

 private:
  struct Answer {
    Ended how;
    std::string body;
  };
  Gateway(std::string url, Address address, std::string password)
      : url_(std::move(url)), address_(std::move(address)), password_(std::move(password)) {}
  std::string urlOf(const Member& member, const char* path) const;
  Answer ask(const Member& member, const char* path, const std::string& body, Deadline deadline);
  Status authenticate(Deadline deadline);
  void setInReach();
  bool ending() const;
  Status outOfReach(const Status& why) const;

  const std::string url_;
  const Address address_;
  const std::string password_;
  const ForkGuard fork_;
  std::unique_ptr<Http> http_;

  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  size_t index_ = 0;
  uint64_t breaks_ = 0;
  std::string token_;
  bool inReach_ = false;
  bool ending_ = false;
};

}  // namespace hmc::store::etcd
