#include <fmt/core.h>

#include "bench/measure.h"
#include "bench/report/units.h"
#include "bench/targets.h"

namespace hmc::bench {

namespace {

// What a put of everything takes, in nanoseconds.
Result<double> timeOfPut(const RemoteRegion& remote, const LocalRegion& local) {
  const auto begin = Clock::now();
  TOOL_TRY(remote.put(local, 0, 0, local.size(), std::chrono::minutes(10)));
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

}  // namespace

// Each size in a process of its own, whose memory is gone before the next one's is taken.
Status measureFirstPuts(Bench& bench) {
  constexpr size_t kSmall = size_t{16} << 20;
  constexpr int kLater = 3;
  for (size_t bytes : bench.plan.sizes) {
    const std::string what = "first put of " + sizeText(bytes);
    bench.step(what);
    TOOL_ASSIGN(auto session, Session::open({"", kSmall, {}, {}}));
    TOOL_ASSIGN(auto path, session->path("ipc"));
    const auto begin = Clock::now();
    TOOL_ASSIGN(LocalRegion local, path->node.allocate("first", bytes));
    const std::chrono::duration<double, std::nano> allocating = Clock::now() - begin;
    TOOL_TRY(session->makeRegion("first", bytes, Device{}));
    TOOL_ASSIGN(RemoteRegion remote, path->peer.open("first"));
    // What is new shall be the memory, not the threads that copy.
    TOOL_TRY(timeOfPut(path->remote, path->local).status());
    Compared compared;
    TOOL_ASSIGN(const double first, timeOfPut(remote, local));
    compared.ours.push_back(first);
    for (int i = 0; i < kLater; ++i) {
      TOOL_ASSIGN(const double later, timeOfPut(remote, local));
      compared.ceiling.push_back(later);
    }
    compared.ratio = first / median(compared.ceiling);
    bench.run.targets.push_back(timeAtMost(what, compared, "later ones", 1.2));
    bench.run.notes.push_back(
        fmt::format("{}: {} until allocate() returned", what, timeText(allocating.count())));
  }
  return Status();
}

}  // namespace hmc::bench
