#include "pool/guardian.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace hmc::tool {

namespace {

// After fork(): nothing here allocates or locks.
[[noreturn]] void guard(int orders) {
  setsid();  // what the terminal sends to us is not meant for it
  // Nobody shall wait for the end of something because this process holds it.
  dup2(orders, STDIN_FILENO);
  if (syscall(SYS_close_range, STDOUT_FILENO, ~0U, 0) != 0) {
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    close(orders);
  }
  static pid_t groups[Guardian::kMostGroups];
  for (pid_t number = 0;;) {
    const ssize_t count = read(STDIN_FILENO, &number, sizeof(number));
    if (count < 0 && errno == EINTR) continue;
    if (count != sizeof(number)) break;
    // Watching takes an empty place, forgetting leaves one.
    for (pid_t& group : groups) {
      if (group != (number > 0 ? 0 : -number)) continue;
      group = number > 0 ? number : 0;
      break;
    }
  }
  for (pid_t group : groups) {
    if (group > 0) kill(-group, SIGKILL);
  }
  _exit(0);
}

}  // namespace

Result<std::unique_ptr<Guardian>> Guardian::start() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return systemError("make a socket");
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) return systemError("start a process that ends the ranks with us");
  if (pid == 0) {
    close(ends[0]);
    guard(ends[1]);
  }
  return std::unique_ptr<Guardian>(new Guardian(pid, std::move(ours)));
}

Guardian::~Guardian() {
  orders_ = Fd();
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// One that was killed is missed, not mourned.
void Guardian::order(pid_t number) const {
  (void)!send(orders_.get(), &number, sizeof(number), MSG_NOSIGNAL);
}

}  // namespace hmc::tool
