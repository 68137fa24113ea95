#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

// Stops a process in the middle of a copy, and always in the same place.
namespace hmc::test {

inline char* unreadablePage = nullptr;
inline const auto pageSize = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));

// The copy goes on from here once the process is resumed.
inline void stopInTheCopy(int, siginfo_t* about, void*) {
  auto* const at = static_cast<char*>(about->si_addr);
  if (at < unreadablePage || at >= unreadablePage + pageSize) ::signal(SIGSEGV, SIG_DFL);
  ::mprotect(unreadablePage, pageSize, PROT_READ | PROT_WRITE);
  ::kill(::getpid(), SIGSTOP);
}

// Whoever reads the page after `byte` first stops this process.
inline void stopWhereRead(char* byte) {
  unreadablePage = byte + (pageSize - reinterpret_cast<uintptr_t>(byte) % pageSize);
  struct sigaction action = {};
  action.sa_sigaction = stopInTheCopy;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, nullptr);
  ::mprotect(unreadablePage, pageSize, PROT_NONE);
}

}  // namespace hmc::test
