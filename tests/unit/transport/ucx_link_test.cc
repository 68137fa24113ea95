#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <span>
#include <thread>

#include "base/error.h"
#include "base/fd.h"
#include "ucx_fixture.h"

namespace hmc::ucx {

TEST(UcxLink, saysOverWhichOfUcxsTransportsItReachesThePeer) {
  UcxPair pair;
  pair.connect();
  EXPECT_NE(pair.remote->path().find('/'), std::string::npos) << pair.remote->path();
  const auto& paths = pair.a->facts().paths;
  EXPECT_TRUE(std::any_of(paths.begin(), paths.end(), [&](const auto& path) {
    return path.name == pair.remote->path();
  })) << pair.remote->path();
}

TEST(UcxLink, aKeyCannotBeImportedBeforeThePeerIsKnown) {
  UcxPair pair;
  auto remote = pair.toB->importKey(pair.sink->key(), kPatience, nullptr);
  EXPECT_EQ(remote.status().code(), Code::invalidArgument) << remote.status().toString();
}

TEST(UcxLink, aSecondConnectIsRefused) {
  UcxPair pair;
  pair.connect();
  EXPECT_EQ(pair.toB->connect(pair.toA->address()).code(), Code::invalidArgument);
  EXPECT_TRUE(pair.put().ok());
}

TEST(UcxLink, aTargetWhoseLeaseIsOverAppliesNothing) {
  UcxPair pair;
  pair.connect();
  ASSERT_TRUE(pair.put().ok());
  pair.leaseOfB->revoke();
  Status status;
  // The service may have been in the middle of a step, which still applies what it finds; but not
  // in the middle of the next one.
  for (int i = 0; i < 2 && status.ok(); ++i) {
    pair.there.assign(1000, 't');
    status = pair.put();
  }
  EXPECT_EQ(status.code(), Code::disconnected) << status.toString();
  EXPECT_EQ(pair.there, std::string(1000, 't'));
}

// Memory of which somebody hears when it is first touched; the thread that did waits meanwhile.
class WatchedMemory {
 public:
  static constexpr size_t kSize = 65536;
  explicit WatchedMemory(std::function<void()> touched)
      : data(static_cast<char*>(
            mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        handle_(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY))) {
    uffdio_api api{UFFD_API, 0, 0};
    uffdio_register all{
        {reinterpret_cast<uintptr_t>(data), kSize}, UFFDIO_REGISTER_MODE_MISSING, 0};
    works = handle_ && ioctl(handle_.get(), UFFDIO_API, &api) == 0 &&
            ioctl(handle_.get(), UFFDIO_REGISTER, &all) == 0;
    if (!works) return;
    thread_ = std::jthread([this, touched = std::move(touched)] {
      uffd_msg message{};
      if (read(handle_.get(), &message, sizeof(message)) <= 0) return;
      touched();
      uffdio_zeropage zeros{{reinterpret_cast<uintptr_t>(data), kSize}, 0, 0};
      ioctl(handle_.get(), UFFDIO_ZEROPAGE, &zeros);
    });
  }
  ~WatchedMemory() {
    if (works) *static_cast<volatile char*>(data);  // lets the thread end
    thread_ = {};
    munmap(data, kSize);
  }

  char* const data;
  bool works = false;

 private:
  Fd handle_;
  std::jthread thread_;
};

// Its process was stopped in the middle of a step, in which it found several requests.
TEST(UcxLink, aTargetWhoseLeaseEndsBetweenTwoRequestsAppliesTheFirstAlone) {
  UcxPair pair;
  WatchedMemory memory([&] { pair.leaseOfB->revoke(); });
  if (!memory.works) GTEST_SKIP() << "this kernel has no userfaultfd for us";
  constexpr size_t kRequests = 16;
  pair.connect();
  auto sink =
      must(pair.b->registerRegion({memory.data, memory.kSize, Device{}}, Access::readWrite));
  auto remote = must(pair.toB->importKey(sink->key(), kPatience, nullptr));
  ASSERT_TRUE(pair.put().ok());
  std::deque<Completion> completions;
  std::vector<Op> ops;
  for (size_t i = 0; i < kRequests; ++i) {
    completions.emplace_back(1);
    ops.push_back({OpKind::put, pair.here.data(), pair.source.get(), remote.get(), i * 1000, 1000,
                   &completions.back()});
  }
  size_t posted = 0;
  auto ended = [&] {
    return posted == ops.size() && std::all_of(completions.begin(), completions.end(),
                                               [](const Completion& one) { return one.done(); });
  };
  for (Deadline deadline = kPatience; !ended() && !deadline.passed();) {
    if (posted < ops.size()) posted += pair.toB->post(std::span(ops).subspan(posted));
    pair.a->progress(std::chrono::milliseconds(20));
  }
  remote.reset();
  pair.remote.reset();
  pair.toB.reset();
  sink.reset();
  EXPECT_EQ(std::count(memory.data, memory.data + memory.kSize, 'h'), 1000);
}

TEST(UcxLink, aPeerThatLeavesIsNamedAsTheReason) {
  UcxPair pair;
  pair.connect();
  ASSERT_TRUE(pair.put().ok());
  pair.toA->close(Status(Code::cancelled, "the test"));
  const Status status = pair.put();
  EXPECT_EQ(status.code(), Code::disconnected) << status.toString();
}

TEST(UcxLink, aPeerThatLeavesAnIdleLinkIsNoticedWithoutAnOperation) {
  UcxPair pair;
  pair.connect();
  pair.toA.reset();
  const Deadline deadline = kPatience;
  Status status;
  while (status.ok() && !deadline.passed()) {
    auto again = pair.toB->importKey(pair.sink->key(), kPatience, nullptr);
    status = again.status();
  }
  EXPECT_EQ(status.code(), Code::disconnected) << status.toString();
}

TEST(UcxLink, aPeerThatDoesNotAnswerIsADeadline) {
  UcxPair pair;
  ASSERT_TRUE(pair.toB->connect(pair.toA->address()).ok());
  auto remote = pair.toB->importKey(pair.sink->key(), Deadline::now(), nullptr);
  EXPECT_EQ(remote.status().code(), Code::deadlineExceeded) << remote.status().toString();
  remote = pair.toB->importKey(pair.sink->key(), kPatience, nullptr);
  EXPECT_TRUE(remote.ok()) << remote.status().toString();
}

TEST(UcxLink, bytesUnderWayAreBounded) {
  UcxPair pair;
  pair.connect();
  constexpr size_t kPiece = size_t{256} << 10;
  std::string large(size_t{64} << 20, 'l');
  std::string room(large.size(), '\0');
  auto source = must(pair.a->registerRegion({large.data(), large.size(), {}}, Access::readWrite));
  auto sink = must(pair.b->registerRegion({room.data(), room.size(), {}}, Access::readWrite));
  auto remote = must(pair.toB->importKey(sink->key(), kPatience, nullptr));
  Completion completion(large.size() / kPiece);
  std::vector<Op> ops;
  for (size_t at = 0; at < large.size(); at += kPiece) {
    ops.push_back(
        {OpKind::put, large.data() + at, source.get(), remote.get(), at, kPiece, &completion});
  }
  std::span<const Op> rest(ops);
  const size_t first = pair.toB->post(rest);
  EXPECT_GT(first, 0u);
  EXPECT_LT(first, ops.size());
  rest = rest.subspan(first);
  while (!completion.done()) {
    pair.a->progress(std::chrono::milliseconds(100));
    rest = rest.subspan(pair.toB->post(rest));
  }
  EXPECT_TRUE(completion.status().ok()) << completion.status().toString();
  EXPECT_EQ(room, large);
}

}  // namespace hmc::ucx
