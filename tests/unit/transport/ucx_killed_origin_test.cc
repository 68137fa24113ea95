#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/codec.h"
#include "base/random.h"
#include "ucx_fixture.h"

extern char** environ;

// UCX's own emulation of a put ends the target's process when the origin goes at the wrong moment.
namespace hmc::ucx {

namespace {

constexpr const char* kVariable = "HMC_TEST_ORIGIN";
constexpr size_t kSize = size_t{4} << 20;
constexpr size_t kPiece = 100000;

std::string unhex(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

// This program again, as an origin that puts until it is killed.
pid_t spawnOrigin(const std::string& address, const std::string& key) {
  std::string self = "/proc/self/exe";
  std::string filter = "--gtest_filter=*DISABLED_putsUntilItIsKilled";
  std::string disabledToo = "--gtest_also_run_disabled_tests";
  char* arguments[] = {self.data(), filter.data(), disabledToo.data(), nullptr};
  std::string variable =
      std::string(kVariable) + "=" + hex(Writer().string(address).string(key).take());
  std::vector<char*> variables;
  for (char** entry = environ; *entry; ++entry) {
    // A test runner's wishes about reports and shards are not for the second process.
    if (std::string_view(*entry).substr(0, 6) != "GTEST_") variables.push_back(*entry);
  }
  variables.push_back(variable.data());
  variables.push_back(nullptr);
  pid_t child = -1;
  return posix_spawn(&child, self.c_str(), nullptr, nullptr, arguments, variables.data()) == 0
             ? child
             : -1;
}

// Bytes of another process, whose order with our own looks nobody knows.
char peek(const std::string& memory) {
  return __atomic_load_n(memory.data(), __ATOMIC_RELAXED);
}

}  // namespace

TEST(UcxKilledOrigin, DISABLED_putsUntilItIsKilled) {
  const char* text = std::getenv(kVariable);
  if (!text) GTEST_SKIP() << "this test runs only as a second process";
  const std::string bytes = unhex(text);
  Reader reader(bytes);
  const std::string address = reader.string();
  const std::string key = reader.string();
  auto transport = must(create());
  auto link = must(transport->openLink(test::linkOptions(true)));
  ASSERT_TRUE(link->connect(address).ok());
  auto remote = must(link->importKey(key, kPatience, nullptr));
  std::string local(kSize, 'k');
  auto source = must(transport->registerRegion({local.data(), kSize, {}}, Access::readWrite));
  const Deadline deadline = kPatience;
  while (!deadline.passed()) {
    Completion completion(kSize / kPiece);
    for (size_t i = 0; i < kSize / kPiece; ++i) {
      const Op op{i % 3 == 2 ? OpKind::get : OpKind::put,
                  local.data() + i * kPiece,
                  source.get(),
                  remote.get(),
                  i * kPiece,
                  kPiece,
                  &completion};
      while (link->post({&op, 1}) == 0) transport->progress(std::chrono::milliseconds(10));
    }
    while (!completion.done()) transport->progress(std::chrono::milliseconds(10));
  }
}

TEST(UcxKilledOrigin, leavesTheTargetAlive) {
  auto transport = must(create());
  std::string memory(kSize, '.');
  auto sink = must(transport->registerRegion({memory.data(), kSize, {}}, Access::readWrite));
  for (int round = 0; round < 8; ++round) {
    auto link = must(transport->openLink(test::linkOptions(false)));
    __atomic_store_n(memory.data(), '.', __ATOMIC_RELAXED);
    const pid_t origin = spawnOrigin(link->address(), sink->key());
    ASSERT_GT(origin, 0);
    const Deadline deadline = kPatience;
    while (peek(memory) != 'k' && !deadline.passed()) std::this_thread::yield();
    kill(origin, SIGKILL);
    waitpid(origin, nullptr, 0);
    ASSERT_EQ(peek(memory), 'k') << "the origin put nothing";
  }
  UcxPair later;
  later.connect();
  EXPECT_TRUE(later.put().ok());
}

}  // namespace hmc::ucx
