#include "pool/rank_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include "try.h"

namespace hmc::tool {

namespace {

constexpr size_t kLongestLine = size_t{64} << 10;

// What execve() needs, ready before fork(): nothing may allocate after it.
struct Image {
  const char* path;
  char** words;
  char** environment;
  const sigset_t* blocked;
  int input;   // -1: nothing to read
  int output;  // -1: ours
  int errors;
  pid_t parent;
};

[[noreturn]] void become(const Image& image) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != image.parent) _exit(127);
  const int nothing = image.input < 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  if (image.output >= 0) dup2(image.output, STDOUT_FILENO);
  if (image.errors >= 0) dup2(image.errors, STDERR_FILENO);
  sigprocmask(SIG_SETMASK, image.blocked, nullptr);
  execve(image.path, image.words, image.environment);
  for (const char* part : {"hmc pool run: the system cannot run ", image.path, "\n"}) {
    if (write(STDERR_FILENO, part, strlen(part)) < 0) break;
  }
  _exit(127);
}

// A process of another group that reads from the terminal would be stopped.
int inputOf(uint32_t rank) {
  return rank == 0 && isatty(STDIN_FILENO) == 0 ? STDIN_FILENO : -1;
}

}  // namespace

Status TaggedOutput::open() {
  TOOL_ASSIGN(pipe_, makePipe());
  if (fcntl(pipe_.read.get(), F_SETFL, O_NONBLOCK) != 0) return systemError("prepare a pipe");
  return Status();
}

void TaggedOutput::drain() {
  char bytes[4096];
  for (;;) {
    const ssize_t count = read(pipe_.read.get(), bytes, sizeof(bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) pipe_.read = Fd();
    if (count <= 0) break;
    pending_.append(bytes, static_cast<size_t>(count));
    print(false);
  }
  std::fflush(to_);
}

void TaggedOutput::finish() {
  drain();
  print(true);
  std::fflush(to_);
}

void TaggedOutput::print(bool all) {
  size_t begin = 0;
  for (size_t end = pending_.find('\n'); end != std::string::npos;
       end = pending_.find('\n', begin)) {
    fmt::print(to_, "{}{}\n", tag_, std::string_view(pending_).substr(begin, end - begin));
    begin = end + 1;
  }
  pending_.erase(0, begin);
  if (pending_.empty() || (!all && pending_.size() < kLongestLine)) return;
  fmt::print(to_, "{}{}\n", tag_, pending_);
  pending_.clear();
}

Result<std::unique_ptr<RankProcess>> RankProcess::start(const RankOptions& options, uint32_t rank,
                                                        const sigset_t& blocked,
                                                        const Guardian& guardian) {
  std::unique_ptr<RankProcess> process(new RankProcess(rank, guardian));
  if (options.tag) {
    process->output_ = std::make_unique<TaggedOutput>(rank, stdout);
    process->errors_ = std::make_unique<TaggedOutput>(rank, stderr);
    TOOL_TRY(process->output_->open());
    TOOL_TRY(process->errors_->open());
  }
  TOOL_TRY(process->launch(options, blocked));
  return process;
}

Status RankProcess::launch(const RankOptions& options, const sigset_t& blocked) {
  const std::string& name = options.words.front();
  const auto path = findProgram(name);
  if (!path) return Status(Code::notFound, fmt::format("there is no program {}", name));
  const auto environment =
      environmentWith({"HMC_POOL_STORE=" + options.store, "HMC_POOL_RANK=" + std::to_string(rank_),
                       "HMC_POOL_SIZE=" + std::to_string(options.count)});
  auto words = pointersTo(options.words);
  auto settings = pointersTo(environment);
  const Image image{path->c_str(),
                    words.data(),
                    settings.data(),
                    &blocked,
                    inputOf(rank_),
                    output_ ? output_->writer() : -1,
                    errors_ ? errors_->writer() : -1,
                    getpid()};
  pid_ = fork();
  if (pid_ < 0) return systemError("start " + name);
  if (pid_ == 0) become(image);
  guardian_.watch(pid_);
  setpgid(pid_, pid_);  // here and in the child, whichever is first
  for (TaggedOutput* output : outputs()) output->closeWriter();
  pidfd_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  return pidfd_ ? Status() : systemError("watch " + name);
}

void RankProcess::signal(int number) const {
  if (running() && pid_ > 0) kill(-pid_, number);
}

void RankProcess::end() {
  if (status_ || pid_ < 0) return;
  signal(SIGKILL);
  guardian_.forget(pid_);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  for (TaggedOutput* output : outputs()) output->finish();
}

std::vector<TaggedOutput*> RankProcess::outputs() const {
  if (!output_) return {};
  return {output_.get(), errors_.get()};
}

}  // namespace hmc::tool
