#pragma once

#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "base/thread.h"
#include "hmc/result.h"

namespace hmc::pool {

// A piece of work that runs beside its caller, in a thread of its own. Destroying it waits for the
// work. For one thread.
template <class T>
class Beside {
 public:
  Beside(const char* name, std::function<Result<T>()> work) : work_(std::move(work)) {
    auto thread = startThread(name, [this](const std::stop_token&) { result_ = work_(); });
    if (thread.ok()) thread_ = *std::move(thread);
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  // Waits for it. Where there was no thread to be had, the caller does the work. Called once.
  Result<T> take() {
    if (thread_.joinable()) thread_.join();
    if (!result_) result_ = work_();
    return *std::move(result_);
  }

 private:
  const std::function<Result<T>()> work_;
  std::optional<Result<T>> result_;
  std::jthread thread_;  // joined before the rest goes
};

}  // namespace hmc::pool
