#pragma once

#include <pthread.h>
#include <signal.h>

#include <string>
#include <thread>
#include <utility>

namespace hmc {

// A thread with a name of at most 15 characters that leaves all signals to the user's threads.
// The function takes a std::stop_token.
template <class Function>
std::jthread namedThread(const char* name, Function function) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  std::jthread thread(std::move(function));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace hmc
