// More bytes in one call than 32 bits can count.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/fd.h"
#include "unit/node/node_pair.h"

namespace hmc {
namespace {

using namespace std::chrono_literals;

// A range of addresses behind which the same few pages lie again and again: gigabytes that need no
// memory. No power of two, so that an offset which has lost its upper bits shows.
class Repeated {
 public:
  static constexpr size_t kPeriod = size_t{4099} * 4096;
  static constexpr size_t kTimes = 260;
  static constexpr size_t kSize = kTimes * kPeriod;
  static_assert(kSize > size_t{1} << 32);

  Repeated() : pages_(memfd_create("repeated", MFD_CLOEXEC)) {
    void* place =
        mmap(nullptr, kSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (ftruncate(pages_.get(), kPeriod) != 0 || place == MAP_FAILED)
      throw std::runtime_error("no memory for the test");
    data_ = static_cast<char*>(place);
    for (size_t i = 0; i < kTimes; ++i) {
      if (mmap(data_ + i * kPeriod, kPeriod, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
               pages_.get(), 0) == MAP_FAILED) {
        throw std::runtime_error("no mapping for the test");
      }
    }
  }
  ~Repeated() { munmap(data_, kSize); }
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;

  char* data() const { return data_; }
  void fill(unsigned seed) {
    for (size_t i = 0; i < kPeriod; i += sizeof seed, seed = seed * 1664525 + 1013904223)
      std::memcpy(data_ + i, &seed, sizeof seed);
  }

 private:
  Fd pages_;
  char* data_;
};

class LargeTransfer : public ::testing::TestWithParam<std::string> {};

TEST_P(LargeTransfer, arrivesWhole) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer keeps several times as much memory as a transfer touches";
#endif
  auto probe = must(Node::create(named("probe")));
  for (const PathReport& path : probe.transports()) {
    if (path.transport == GetParam() && !path.usable) GTEST_SKIP() << path.reason;
  }
  NodePair nodes({GetParam()});
  Repeated source;
  Repeated target;
  auto there = must(nodes.a.registerMemory("there", target.data(), Repeated::kSize));
  auto here = must(nodes.b.registerMemory("here", source.data(), Repeated::kSize));
  auto remote = must(nodes.toA.open("there"));
  constexpr size_t kAll = Repeated::kSize - 3;  // neither side's end is round
  source.fill(1);
  Status put = remote.put(here, 1, 1, kAll, 600s);
  ASSERT_TRUE(put.ok()) << put.toString();
  EXPECT_EQ(std::memcmp(source.data() + 1, target.data() + 1, Repeated::kPeriod), 0);
  target.fill(2);
  Status get = remote.get(here, 1, 1, kAll, 600s);
  ASSERT_TRUE(get.ok()) << get.toString();
  EXPECT_EQ(std::memcmp(source.data() + 1, target.data() + 1, Repeated::kPeriod), 0);
}

INSTANTIATE_TEST_SUITE_P(All, LargeTransfer, ::testing::Values("ipc", "tcp", "ucx", "verbs"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace hmc
