#include "child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

extern char** environ;

namespace hmc::tool {

namespace {

Status failure(const std::string& what) {
  return Status(Code::failed, what + ": " + std::strerror(errno));
}

// Both ends closed on exec; posix_spawn's dup2 opens the child's.
bool makePipe(int ends[2]) {
  return pipe2(ends, O_CLOEXEC) == 0;
}

}  // namespace

Result<std::unique_ptr<Child>> Child::start(const std::vector<std::string>& arguments) {
  int toChild[2];
  int fromChild[2];
  if (!makePipe(toChild)) return failure("make a pipe");
  if (!makePipe(fromChild)) {
    close(toChild[0]);
    close(toChild[1]);
    return failure("make a pipe");
  }
  std::vector<char*> argv{const_cast<char*>("hmc")};
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, toChild[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fromChild[1], STDOUT_FILENO);
  pid_t pid = 0;
  errno = posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  Status started = errno == 0 ? Status() : failure("start another hmc process");
  posix_spawn_file_actions_destroy(&actions);
  close(toChild[0]);
  close(fromChild[1]);
  if (!started.ok()) {
    close(toChild[1]);
    close(fromChild[0]);
    return started;
  }
  return std::unique_ptr<Child>(new Child(pid, toChild[1], fromChild[0]));
}

Child::~Child() {
  close(input_);
  close(output_);
  kill(pid_, SIGTERM);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<std::string> Child::readLine(Deadline deadline) {
  for (;;) {
    size_t end = unread_.find('\n');
    if (end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    pollfd entry{output_, POLLIN, 0};
    int ready = poll(&entry, 1, deadline.leftMs());
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return Status(Code::deadlineExceeded, "the other process said nothing in time");
    char bytes[512];
    ssize_t count = read(output_, bytes, sizeof(bytes));
    if (count <= 0) return Status(Code::disconnected, "the other process ended");
    unread_.append(bytes, static_cast<size_t>(count));
  }
}

}  // namespace hmc::tool
