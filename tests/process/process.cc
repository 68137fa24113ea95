#include "process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <random>
#include <stdexcept>

namespace hmc::test {

namespace {

std::vector<char*> pointersTo(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Ours, less a test runner's wishes, with the given changes.
std::vector<std::string> environmentWith(const Process::Environment& changes) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    std::string text(*entry);
    if (text.rfind("GTEST_", 0) == 0 || changes.count(text.substr(0, text.find('=')))) continue;
    all.push_back(text);
  }
  for (const auto& [name, value] : changes) all.push_back(name + "=" + value);
  return all;
}

Reply parse(const std::string& line) {
  Reply reply;
  size_t space = line.find(' ');
  std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
  reply.ok = line.substr(0, space) == "ok";
  if (!reply.ok) {
    space = rest.find(' ');
    reply.code = rest.substr(0, space);
    rest = space == std::string::npos ? "" : rest.substr(space + 1);
  }
  reply.text = rest;
  return reply;
}

bool canListen(uint16_t port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  bool free = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  close(fd);
  return free;
}

// Waits for a change of the child's state; -1 when none comes in time.
int waitFor(pid_t pid, int options) {
  int status = -1;
  bool changed = eventually([&] { return waitpid(pid, &status, options | WNOHANG) != 0; });
  return changed ? status : -1;
}

int exitStatus(int status) {
  if (status == -1) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

uint16_t freePort() {
  static std::minstd_rand random{std::random_device{}()};
  for (;;) {
    auto port = static_cast<uint16_t>(std::uniform_int_distribution<>(12000, 32000)(random));
    if (canListen(port)) return port;
  }
}

void pauseBetweenLooks() {
  poll(nullptr, 0, 5);
}

int cyclesOr(int usual) {
  const char* wanted = std::getenv("HMC_TEST_CYCLES");
  return wanted ? std::atoi(wanted) : usual;
}

Process::Process(std::vector<std::string> command, const Environment& changes) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error("no socket pair for a child");
  auto variables = environmentWith(changes);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  int failed = posix_spawnp(&pid_, command[0].c_str(), &actions, nullptr,
                            pointersTo(command).data(), pointersTo(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  socket_ = ends[0];
  if (failed) {
    close(socket_);
    throw std::runtime_error("cannot start " + command[0]);
  }
}

Process::~Process() {
  kill();
  close(socket_);
}

void Process::say(const std::string& line) {
  std::string text = line + "\n";
  // A process that is gone answers "GONE".
  (void)!send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
}

Reply Process::answer(std::chrono::milliseconds timeout) {
  auto end = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    size_t newline = heard_.find('\n');
    if (newline != std::string::npos) {
      std::string line = heard_.substr(0, newline);
      heard_.erase(0, newline + 1);
      return parse(line);
    }
    auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd readable{socket_, POLLIN, 0};
    int ready = left.count() > 0 ? poll(&readable, 1, static_cast<int>(left.count())) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return {false, "SILENT", "no answer in time"};
    char bytes[4096];
    ssize_t count = recv(socket_, bytes, sizeof(bytes), 0);
    if (count <= 0) return {false, "GONE", "the process has ended"};
    heard_.append(bytes, static_cast<size_t>(count));
  }
}

void Process::kill() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

void Process::stop() {
  ::kill(pid_, SIGSTOP);
  awaitStop();
}

void Process::awaitStop() {
  waitFor(pid_, WUNTRACED);
  stopped_ = true;
}

void Process::resume() {
  ::kill(pid_, SIGCONT);
  waitFor(pid_, WCONTINUED);
  stopped_ = false;
}

int Process::finish() {
  if (pid_ < 0) return exitStatus(status_);
  shutdown(socket_, SHUT_WR);
  int status = waitFor(pid_, 0);
  if (status == -1) return -1;
  pid_ = -1;
  status_ = status;
  return exitStatus(status_);
}

}  // namespace hmc::test
