// One rank of a program that a launcher starts. It knows of its pool what the environment says.
//
//   pool_rank meet           all add their ranks up in rank 0's slot; then rank 0 leaves first
//   pool_rank fail R STATUS  rank R ends with that status, the others wait for a signal
//   pool_rank wait           until a signal ends it
//   pool_rank ignore R       the same, but SIGTERM does not end rank R

#include <hmc/pool.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr std::chrono::seconds kLong{60};
constexpr size_t kSize = 4096;

hmc::Pool join() {
  hmc::PoolOptions options;
  options.hostSize = kSize;
  auto joined = hmc::Pool::join("", options, kLong);
  if (!joined.ok()) {
    std::fprintf(stderr, "%s\n", joined.status().message().c_str());
    std::exit(1);
  }
  return *std::move(joined);
}

// Until all are there. False when one does not come.
bool awaitAll(hmc::Pool& pool) {
  for (uint32_t others = 1; others < pool.capacity();) {
    const auto event = pool.nextEvent(kLong);
    if (!event.ok()) return false;
    if (event->kind == hmc::PoolEvent::Kind::joined) ++others;
  }
  return true;
}

bool awaitLeft(hmc::Pool& pool, uint32_t rank) {
  for (;;) {
    const auto event = pool.nextEvent(kLong);
    if (!event.ok()) return false;
    if (event->kind == hmc::PoolEvent::Kind::left && event->rank == rank) return true;
  }
}

// Everybody adds its rank to one word of rank 0's slot and 1 to another.
bool meet(hmc::Pool& pool) {
  if (!awaitAll(pool)) return false;
  auto* const words = static_cast<uint32_t*>(pool.slot(0).value().address);
  __atomic_fetch_add(&words[0], pool.rank(), __ATOMIC_SEQ_CST);
  __atomic_fetch_add(&words[1], 1, __ATOMIC_SEQ_CST);
  if (pool.rank() != 0) return awaitLeft(pool, 0);
  while (__atomic_load_n(&words[1], __ATOMIC_SEQ_CST) < pool.capacity()) poll(nullptr, 0, 1);
  std::printf("the ranks add up to %u\n", words[0]);
  return true;
}

int await() {
  std::printf("ready %d\n", getpid());
  std::fflush(stdout);
  for (;;) pause();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const uint32_t special = argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : 0;
  auto pool = join();
  if (what == "meet") {
    if (!meet(pool)) return 1;
    const hmc::Status left = pool.leave(kLong);
    std::printf("rank %u of %u: %s\n", pool.rank(), pool.capacity(), left.toString().c_str());
    return left.ok() ? 0 : 1;
  }
  if (!awaitAll(pool)) return 1;
  if (what == "fail" && pool.rank() == special) return std::atoi(argv[3]);
  if (what == "ignore" && pool.rank() == special) signal(SIGTERM, SIG_IGN);
  return await();
}
