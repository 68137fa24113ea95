#pragma once

#include <pthread.h>
#include <signal.h>

#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"

namespace hmc {

// While it lives, this thread and those that it starts take no signals.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// A thread with a name of at most 15 characters that leaves all signals to the user's threads.
// The function takes a std::stop_token. Throws std::system_error when the system has none for us.
template <class Function>
std::jthread namedThread(const char* name, Function function) {
  const SignalsBlocked blocked;
  std::jthread thread(std::move(function));
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

// The same with a Status in the place of the exception.
template <class Function>
Result<std::jthread> startThread(const char* name, Function function) {
  try {
    return namedThread(name, std::move(function));
  } catch (const std::system_error& problem) {
    return errnoStatus(fmt::format("start the thread {}", name), problem.code().value());
  }
}

}  // namespace hmc
