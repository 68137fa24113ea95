// Members of a pool in a ring: everyone copies into the slot of the next one, and says so with a
// word behind the bytes. The same lines serve members of one host and of many.
//
//   pool_ring tcp://127.0.0.1:7000 4

#include <hmc/pool.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using namespace std::chrono_literals;

// Of a slot: the bytes, how many rounds have arrived, how many the next member has taken from us.
constexpr size_t kBytes = size_t{1} << 20;
constexpr size_t kArrived = kBytes;
constexpr size_t kTaken = kBytes + 64;
constexpr uint64_t kRounds = 20;

void check(const hmc::Status& status, const char* what) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", what, status.message().c_str());
  std::exit(1);
}

void fill(std::vector<char>& bytes, uint32_t rank, uint64_t round) {
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + rank * 31 + round);
}

// Another process writes the word.
void await(const char* word, uint64_t value) {
  const auto end = std::chrono::steady_clock::now() + 60s;
  const auto* const counter = reinterpret_cast<const uint64_t*>(word);
  while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) < value) {
    if (std::chrono::steady_clock::now() > end) {
      std::fprintf(stderr, "a neighbour did not come in time\n");
      std::exit(1);
    }
    sched_yield();
  }
}

int run(const char* url, uint32_t count, uint32_t rank) {
  hmc::PoolOptions options;
  options.rank = rank;
  options.capacity = count;
  options.hostSize = kBytes + 4096;
  options.serveStore = rank == 0;
  auto joined = hmc::Pool::join(url, options, 60s);
  check(joined.status(), "join");
  hmc::Pool pool = *std::move(joined);
  while (pool.ranks().size() < count) check(pool.nextEvent(60s).status(), "wait for the others");

  auto slot = [&](uint32_t of) {
    auto found = pool.slot(of % count);
    check(found.status(), "slot");
    return static_cast<char*>(found->address);
  };
  char* const own = slot(rank);
  char* const next = slot(rank + 1);
  char* const previous = slot(rank + count - 1);
  std::vector<char> sent(kBytes);
  std::vector<char> expected(kBytes);
  for (uint64_t round = 1; round <= kRounds; ++round) {
    fill(sent, rank, round);
    check(pool.copy(next, sent.data(), kBytes), "copy");
    // The bytes are in place by now.
    check(pool.copy(next + kArrived, &round, sizeof(round)), "copy the word");
    await(own + kArrived, round);
    fill(expected, (rank + count - 1) % count, round);
    if (std::memcmp(own, expected.data(), kBytes) != 0) {
      std::fprintf(stderr, "rank %u: other bytes than the previous one sent\n", rank);
      return 1;
    }
    check(pool.copy(previous + kTaken, &round, sizeof(round)), "thank");
    await(own + kTaken, round);
  }
  // Rank 0 serves the store, which the others need to leave.
  while (rank == 0 && pool.ranks().size() > 1) check(pool.nextEvent(60s).status(), "wait");
  check(pool.leave(), "leave");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: pool_ring tcp://host:port MEMBERS\n");
    return 2;
  }
  const int count = std::atoi(argv[2]);
  int failed = 0;
  for (int rank = 0; rank < count; ++rank) {
    const pid_t child = fork();
    if (child == 0) std::exit(run(argv[1], uint32_t(count), uint32_t(rank)));
    failed += child < 0;
  }
  int status = 0;
  while (wait(&status) > 0) failed += !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  std::printf("%d members, %d failed\n", count, failed);
  return failed != 0;
}
