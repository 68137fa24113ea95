#include "pool/ranks.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include <fmt/core.h>

#include "hmc/deadline.h"
#include "pool/rank_process.h"
#include "try.h"

namespace hmc::tool {

namespace {

constexpr int kCannotStart = 1;
constexpr int kKilledBy = 128;  // as a shell has it: 128 + signal

// As nohup has it, and shells for jobs in the background.
bool isIgnored(int number) {
  struct sigaction now {};
  return sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

class Ranks {
 public:
  explicit Ranks(const RankOptions& options) : options_(options) {}

  // From now on the signals that end us are read from a descriptor.
  Status start() {
    sigset_t taken;
    sigset_t before;
    sigemptyset(&taken);
    for (int one : {SIGINT, SIGTERM, SIGHUP}) {
      if (!isIgnored(one)) sigaddset(&taken, one);
    }
    pthread_sigmask(SIG_BLOCK, &taken, &before);
    signals_ = Fd(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) return systemError("listen to signals");
    TOOL_ASSIGN(guardian_, Guardian::start());
    for (uint32_t rank = 0; rank < options_.count; ++rank) {
      TOOL_ASSIGN(auto started, RankProcess::start(options_, rank, before, *guardian_));
      ranks_.push_back(std::move(started));
    }
    return Status();
  }

  int wait() {
    while (anyRuns()) step();
    return interrupted_ != 0 ? kKilledBy + interrupted_ : failed_;
  }

 private:
  bool anyRuns() const {
    return std::any_of(ranks_.begin(), ranks_.end(),
                       [](const auto& rank) { return rank->running(); });
  }

  void step() {
    std::vector<pollfd> watched{{signals_.get(), POLLIN, 0}};
    for (const auto& rank : ranks_) {
      if (!rank->running()) continue;
      watched.push_back({rank->ended(), POLLIN, 0});
      for (const TaggedOutput* output : rank->outputs())
        watched.push_back({output->reader(), POLLIN, 0});
    }
    const int ready = poll(watched.data(), watched.size(), killAt_.leftMs());
    if (killAt_.passed()) killAll();
    if (ready <= 0) return;
    takeSignal();
    for (const auto& rank : ranks_) {
      if (!rank->running()) continue;
      for (TaggedOutput* output : rank->outputs()) output->drain();
      pollfd ended{rank->ended(), POLLIN, 0};
      if (poll(&ended, 1, 0) == 1) reap(*rank);
    }
  }

  void takeSignal() {
    signalfd_siginfo info{};
    if (read(signals_.get(), &info, sizeof(info)) != sizeof(info)) return;
    const int number = static_cast<int>(info.ssi_signo);
    // Who asks twice does not want to wait.
    if (interrupted_ != 0) {
      killAll();
    } else {
      interrupted_ = number;
      endAll(number);
    }
  }

  void reap(RankProcess& rank) {
    rank.end();
    if (rank.status() == 0 || failed_ != 0 || interrupted_ != 0) return;
    failed_ = rank.status();
    const std::string how = failed_ > kKilledBy
                                ? fmt::format("was ended by signal {} ({})", failed_ - kKilledBy,
                                              strsignal(failed_ - kKilledBy))
                                : fmt::format("ended with status {}", failed_);
    fmt::print(stderr, "hmc pool run: rank {} {}; the others are ended\n", rank.rank(), how);
    endAll(SIGTERM);
  }

  void endAll(int number) {
    for (const auto& rank : ranks_) rank->signal(number);
    killAt_ = earlier(killAt_, options_.grace);
  }

  void killAll() {
    killAt_ = Deadline::never();
    for (const auto& rank : ranks_) rank->signal(SIGKILL);
  }

  const RankOptions& options_;
  Fd signals_;
  std::unique_ptr<Guardian> guardian_;
  std::vector<std::unique_ptr<RankProcess>> ranks_;
  int failed_ = 0;       // the status of the first that failed
  int interrupted_ = 0;  // by which signal
  Deadline killAt_ = Deadline::never();
};

}  // namespace

int runRanks(const RankOptions& options) {
  Ranks ranks(options);
  const Status started = ranks.start();
  if (!started.ok()) {
    fmt::print(stderr, "hmc pool run: {}\n", started.message());
    return kCannotStart;
  }
  return ranks.wait();
}

}  // namespace hmc::tool
