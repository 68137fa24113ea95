#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <thread>

#include "node_pair.h"

// A process that puts is stopped in the middle of it for longer than the lease. Its peer gives it
// up, and uses the memory for something else: nothing that the process does when it goes on may
// change that.
namespace hmc {
namespace {

using namespace std::chrono_literals;

constexpr size_t kSize = size_t{16} << 20;
constexpr auto kLease = 800ms;
constexpr unsigned char kReused = 0xEE;

NodeOptions withLease(const std::string& name) {
  NodeOptions options = named(name, {"ipc"});
  options.lease = kLease;
  options.heartbeat = 100ms;
  return options;
}

// One way of putting, with the memory that it goes to.
struct Case {
  size_t piece;
  bool own;         // the memory is its owner's and reached through the kernel
  size_t mostLate;  // bytes
  // Threads that get, whose failures end the link. The puts are changes of eight bytes then, which
  // look at no lease: they wait in the kernel for their own process.
  size_t getters = 0;
};

// The child: moves pieces of that size, over and over, until one fails.
int moveUntilItFails(int addressFrom, const Case& one, size_t number) {
  char address[256] = {};
  if (read(addressFrom, address, sizeof(address) - 1) <= 0) return 2;
  Node node = must(Node::create(withLease("origin")));
  auto local = must(node.allocate("local", kSize));
  std::memset(local.data(), 1, kSize);
  auto peer = must(node.connect(address));
  auto remote = must(peer.open("target" + std::to_string(number)));
  if (!remote.put(local, 0, 0, kSize).ok() || !peer.notify("go").ok()) return 3;
  alarm(60);  // ends a child that hangs
  std::vector<std::jthread> others(one.getters);
  for (size_t i = 0; i < others.size(); ++i) {
    others[i] = std::jthread([&, i] {
      while (remote.get(local, i * one.piece, 0, one.piece).ok()) {
      }
    });
  }
  for (size_t at = 0;; at = (at + one.piece) % kSize) {
    const Status moved =
        one.getters > 0 ? remote.fetchAdd(0, 1).status() : remote.put(local, at, at, one.piece);
    if (!moved.ok()) return moved.code() == Code::disconnected ? 0 : 4;
  }
}

struct Origin {
  // Forked before this process has threads.
  Origin(const Case& one, size_t number) {
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) _exit(moveUntilItFails(ends[0], one, number));
  }
  ~Origin() {
    for (int end : ends) close(end);
    if (pid > 0 && !reaped) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  void dial(const std::string& address) const {
    ASSERT_EQ(::write(ends[1], address.data(), address.size()),
              static_cast<ssize_t>(address.size()));
  }
  void stop() const {
    ASSERT_EQ(kill(pid, SIGSTOP), 0);
    ASSERT_EQ(waitpid(pid, nullptr, WUNTRACED), pid);
  }
  // Its exit status once it has noticed.
  int goOn() {
    EXPECT_EQ(kill(pid, SIGCONT), 0);
    int state = 0;
    EXPECT_EQ(waitpid(pid, &state, 0), pid);
    reaped = true;
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
  }

  int ends[2] = {-1, -1};
  pid_t pid = -1;
  bool reaped = false;
};

size_t changed(const LocalRegion& region) {
  const auto* bytes = static_cast<const unsigned char*>(region.data());
  return region.size() - static_cast<size_t>(std::count(bytes, bytes + region.size(), kReused));
}

// Between a look at the lease and the call of the kernel there is a moment in which a process can
// be stopped: then one piece is late. docs/gotchas.md says how large that is.
const Case kCases[] = {{kSize, false, 0},
                       {size_t{1} << 20, false, 0},
                       {4096, false, 0},
                       {size_t{1} << 20, false, 0, 8},
                       {kSize, true, size_t{1} << 20},
                       {4096, true, 4096}};

TEST(LostOrigin, changesNothingWhenItGoesOn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer ends a forked child that makes threads";
#endif
  std::deque<Origin> origins;
  for (const Case& one : kCases) origins.emplace_back(one, origins.size());
  Node node = must(Node::create(withLease("target")));
  std::deque<std::vector<char>> heap;
  std::vector<LocalRegion> targets;
  const std::string address = must(node.listen("tcp://127.0.0.1:0"));
  for (size_t i = 0; i < origins.size(); ++i) {
    const std::string name = "target" + std::to_string(i);
    if (kCases[i].own) heap.emplace_back(kSize);
    targets.push_back(kCases[i].own ? must(node.registerMemory(name, heap.back().data(), kSize))
                                    : must(node.allocate(name, kSize)));
    origins[i].dial(address);
  }
  for (size_t i = 0; i < origins.size(); ++i) must(node.nextNote(30s));
  for (const Origin& origin : origins) origin.stop();
  for (size_t i = 0; i < 2 * origins.size(); ++i) {
    const auto wanted = i < origins.size() ? PeerEvent::Kind::joined : PeerEvent::Kind::left;
    ASSERT_EQ(must(node.nextPeerEvent(30s)).kind, wanted);
  }
  for (const LocalRegion& target : targets) std::memset(target.data(), kReused, kSize);
  for (size_t i = 0; i < origins.size(); ++i) {
    EXPECT_EQ(origins[i].goOn(), 0) << i;
    EXPECT_LE(changed(targets[i]), kCases[i].mostLate) << "pieces of " << kCases[i].piece;
  }
}

}  // namespace
}  // namespace hmc
