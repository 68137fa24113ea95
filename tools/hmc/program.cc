#include "program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <fmt/core.h>

#include "try.h"

extern char** environ;

namespace hmc::tool {

namespace {

constexpr size_t kMostKept = 1 << 20;  // of what a program prints
constexpr const char* kErrorMark = "error ";
constexpr std::chrono::seconds kStartTimeout{60};  // of another process of ours

bool isProgram(const std::string& path) {
  return access(path.c_str(), X_OK) == 0;
}

// After fork(): nothing here allocates or locks.
[[noreturn]] void become(const char* path, char** words, char** environment, const Fd& output,
                         const Fd& errors, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // an interrupted benchmark leaves no server behind
  if (getppid() != parent) _exit(127);
  int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  dup2(output.get(), STDOUT_FILENO);
  if (errors) dup2(errors.get(), STDERR_FILENO);
  execve(path, words, environment);
  _exit(127);
}

// Reads what is there. False at the end of it.
bool drain(int fd, std::string& into) {
  char bytes[4096];
  ssize_t count = read(fd, bytes, sizeof(bytes));
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  into.append(bytes, std::min(static_cast<size_t>(count), kMostKept - into.size()));
  return count > 0;
}

// These programs word it differently when nothing listens on the port.
bool couldNotConnect(const Status& status) {
  return status.code() == Code::failed && status.message().find("onnect") != std::string::npos;
}

}  // namespace

std::vector<std::string> environmentWith(const std::vector<std::string>& additions) {
  std::vector<std::string> all = additions;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string start = text.substr(0, text.find('=') + 1);
    const bool replaced = std::any_of(additions.begin(), additions.end(), [&](const auto& added) {
      return added.compare(0, start.size(), start) == 0;
    });
    if (!replaced) all.push_back(text);
  }
  return all;
}

std::vector<char*> pointersTo(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const auto& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

Result<Pipe> makePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return systemError("make a pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

std::optional<std::string> findProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return isProgram(name) ? std::optional(name) : std::nullopt;
  }
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string file = (folder.empty() ? "." : folder) + "/" + name;
    if (isProgram(file)) return file;
  }
  return std::nullopt;
}

Result<std::string> findOwnFile(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path folder = fs::read_symlink("/proc/self/exe", ignored);
  while (folder.has_relative_path()) {
    folder = folder.parent_path();
    const fs::path file = folder / name;
    if (fs::exists(file, ignored)) return file.string();
  }
  return Status(Code::notFound,
                fmt::format("{} is missing: it is installed with this program", name));
}

Status needProgram(const std::string& name, const char* package) {
  if (findProgram(name)) return Status();
  return Status(Code::notFound, fmt::format("{} is not installed: apt install {}", name, package));
}

Status nothingMeasured(const std::string& program, const std::string& printed) {
  return Status(Code::failed, fmt::format("{} printed no measurements: {}", program,
                                          printed.empty() ? "nothing" : printed.substr(0, 200)));
}

Result<std::unique_ptr<Program>> Program::start(const Command& command, Errors errors) {
  const std::string& name = command.words.front();
  auto path = findProgram(name);
  if (!path) return Status(Code::notFound, fmt::format("{} is not installed", name));
  TOOL_ASSIGN(Pipe output, makePipe());
  Pipe complaints;
  if (errors == Errors::kept) {
    TOOL_ASSIGN(complaints, makePipe());
  }
  const auto environment = environmentWith(command.environment);
  auto words = pointersTo(command.words);
  auto settings = pointersTo(environment);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return systemError("start " + name);
  if (pid == 0)
    become(path->c_str(), words.data(), settings.data(), output.write, complaints.write, parent);
  setpgid(pid, pid);  // here and in the child, whichever is first
  std::unique_ptr<Program> program(new Program(name, pid));
  program->output_ = std::move(output.read);
  program->errors_ = std::move(complaints.read);
  program->ended_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!program->ended_) return systemError("watch " + name);
  return program;
}

Program::~Program() {
  // The rest of the group may outlive its first process.
  kill(-pid_, SIGKILL);
  reap(true);
}

void Program::reap(bool block) {
  if (waitStatus_) return;
  int status = 0;
  pid_t got = 0;
  do {
    got = waitpid(pid_, &status, block ? 0 : WNOHANG);
  } while (got < 0 && errno == EINTR);
  if (got == pid_) waitStatus_ = status;
}

bool Program::running() {
  reap(false);
  return !waitStatus_;
}

bool Program::collect(Deadline deadline) {
  bool moreOutput = true;
  bool moreErrors = true;
  for (;;) {
    std::array<pollfd, 3> entries{{{moreOutput ? output_.get() : -1, POLLIN, 0},
                                   {moreErrors ? errors_.get() : -1, POLLIN, 0},
                                   {ended_.get(), POLLIN, 0}}};
    int ready = poll(entries.data(), entries.size(), deadline.leftMs());
    if (ready == 0 && deadline.passed()) return false;
    if (ready <= 0) continue;
    const bool printed = entries[0].revents != 0;
    const bool complained = entries[1].revents != 0;
    if (printed) moreOutput = drain(output_.get(), printed_);
    if (complained) moreErrors = drain(errors_.get(), complained_);
    // Drain the pipes first. Children that still hold them open do not count.
    if (!printed && !complained && entries[2].revents != 0) return true;
  }
}

std::string Program::complaint() const {
  const std::string& text = complained_.empty() ? printed_ : complained_;
  constexpr size_t kMost = 300;
  const size_t last = text.find_last_not_of(" \t\r\n");
  if (last == std::string::npos) return "it said nothing";
  std::string end = text.substr(0, last + 1);
  if (end.size() > kMost) end = "... " + end.substr(end.size() - kMost);
  std::replace(end.begin(), end.end(), '\n', ' ');
  return end;
}

Result<std::string> Program::firstLine(Deadline deadline) {
  size_t end = std::string::npos;
  while ((end = printed_.find('\n')) == std::string::npos) {
    pollfd entry{output_.get(), POLLIN, 0};
    const int ready = poll(&entry, 1, deadline.leftMs());
    if (ready == 0) return Status(Code::deadlineExceeded, name_ + " printed nothing in time");
    if (ready > 0 && !drain(output_.get(), printed_))
      return Status(Code::disconnected, name_ + " ended before it printed a line");
  }
  return printed_.substr(0, end);
}

Result<std::string> Program::finish(Deadline deadline) {
  if (!collect(deadline)) {
    kill(-pid_, SIGKILL);
    return Status(Code::deadlineExceeded,
                  fmt::format("{} did not end in time and was stopped: {}", name_, complaint()));
  }
  reap(true);
  if (WIFSIGNALED(*waitStatus_)) {
    return Status(Code::failed, fmt::format("{} was ended by signal {}: {}", name_,
                                            WTERMSIG(*waitStatus_), complaint()));
  }
  if (WEXITSTATUS(*waitStatus_) != 0) {
    return Status(Code::failed, fmt::format("{} failed with status {}: {}", name_,
                                            WEXITSTATUS(*waitStatus_), complaint()));
  }
  return printed_;
}

Result<std::string> runProgram(const Command& command, Deadline deadline) {
  TOOL_ASSIGN(auto program, Program::start(command));
  return program->finish(deadline);
}

Result<std::string> runServerAndClient(const Command& server, const Command& client,
                                       Deadline deadline) {
  TOOL_ASSIGN(auto serving, Program::start(server));
  // Its output may be buffered until it ends, so only a client can tell whether it listens.
  for (;;) {
    auto answer = runProgram(client, deadline);
    if (answer.ok() || !couldNotConnect(answer.status()) || deadline.passed()) return answer;
    if (!serving->running()) {
      auto why = serving->finish(deadline);
      return why.ok() ? answer.status() : why.status().within("the server side");
    }
  }
}

Result<OtherProcess> startOtherProcess(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "/proc/self/exe");
  TOOL_ASSIGN(auto program, Program::start({std::move(arguments), {}}, Program::Errors::ours));
  TOOL_ASSIGN(std::string line, program->firstLine(kStartTimeout));
  if (line.rfind(kErrorMark, 0) == 0) {
    return Status(Code::failed,
                  "the other process could not start: " + line.substr(strlen(kErrorMark)));
  }
  return OtherProcess{std::move(program), std::move(line)};
}

bool tellParent(const Result<std::string>& address) {
  fmt::print("{}\n", address.ok() ? *address : kErrorMark + address.status().message());
  std::fflush(stdout);
  return address.ok();
}

}  // namespace hmc::tool
