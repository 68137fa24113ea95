#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "hmc/deadline.h"
#include "hmc/result.h"

namespace hmc::control {

// The questions that wait for a peer's answer. Safe from any thread.
class Calls {
 public:
  explicit Calls(std::string who) : who_(std::move(who)) {}

  // A number for a new question; wait() or forget() it, unless `then` is there to take its answer.
  using Then = std::function<void(Result<std::string>)>;
  uint64_t begin(Then then = nullptr);
  // `stop` ends it with cancelled.
  Result<std::string> wait(uint64_t number, Deadline deadline, const std::stop_token& stop = {});
  void forget(uint64_t number);

  // An answer to nobody's question (its asker gave up) is dropped.
  void answer(uint64_t number, Result<std::string> answer);
  // Everybody's answer from now on, given at once to who comes later.
  void end(const Status& why);

 private:
  Status noAnswer(const std::stop_token& stop) const;  // with mutex_

  const std::string who_;
  // Guards everything below.
  std::mutex mutex_;
  std::condition_variable answered_;
  uint64_t last_ = 0;
  struct Question {
    std::optional<Result<std::string>> answer;
    Then then;
  };
  std::map<uint64_t, Question> open_;
  Status ended_;
};

}  // namespace hmc::control
