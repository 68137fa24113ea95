#include "child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstdio>

#include <fmt/core.h>

extern char** environ;

namespace hmc::tool {

namespace {

constexpr const char* kErrorMark = "error ";

struct Pipe {
  Fd read;
  Fd write;
};

// Both ends are closed on exec; posix_spawn's dup2 opens the child's.
Result<Pipe> makePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return systemError("make a pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

}  // namespace

Result<std::unique_ptr<Child>> Child::start(const std::vector<std::string>& arguments) {
  auto toChild = makePipe();
  auto fromChild = makePipe();
  if (!toChild.ok()) return toChild.status();
  if (!fromChild.ok()) return fromChild.status();
  std::vector<char*> argv{const_cast<char*>("hmc")};
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, toChild->read.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fromChild->write.get(), STDOUT_FILENO);
  pid_t pid = 0;
  const int problem = posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) return systemError("start another hmc process", problem);
  return std::unique_ptr<Child>(
      new Child(pid, std::move(toChild->write), std::move(fromChild->read)));
}

Child::~Child() {
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
      if (line.rfind(kErrorMark, 0) != 0) return line;
      return Status(Code::failed,
                    "the other process could not start: " + line.substr(strlen(kErrorMark)));
    }
    pollfd entry{output_.get(), POLLIN, 0};
    int ready = poll(&entry, 1, deadline.leftMs());
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0)
      return Status(Code::deadlineExceeded, "the other process printed nothing in time");
    char bytes[512];
    ssize_t count = read(output_.get(), bytes, sizeof(bytes));
    if (count <= 0) return Status(Code::disconnected, "the other process ended");
    unread_.append(bytes, static_cast<size_t>(count));
  }
}

bool tellParent(const Result<std::string>& address) {
  fmt::print("{}\n", address.ok() ? *address : kErrorMark + address.status().message());
  std::fflush(stdout);
  return address.ok();
}

void waitForParentToEnd() {
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

}  // namespace hmc::tool
