#include <gmock/gmock.h>
#include <sys/mman.h>

#include <algorithm>

#include "base/error.h"
#include "unit/transport/tcp_pair.h"

// Memory that was unmapped or protected after it was registered, at either end: the transfer that
// meets it fails, the others and the link go on, and no process ends.
namespace hmc::tcp {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr size_t kPage = 4096;
constexpr size_t kShared = size_t{2} << 20;

// Pages, of which some may be taken away.
class Pages {
 public:
  explicit Pages(size_t size, char fill = 'm') : size_(size) {
    at_ = static_cast<char*>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::fill_n(at_, size, fill);
  }
  ~Pages() { munmap(at_, size_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  char* at(size_t offset = 0) const { return at_ + offset; }
  size_t size() const { return size_; }
  void allow(size_t offset, size_t size, int protection) const {
    ASSERT_EQ(mprotect(at_ + offset, size, protection), 0);
  }
  void unmap(size_t offset, size_t size) const { ASSERT_EQ(munmap(at_ + offset, size), 0); }

 private:
  size_t size_;
  char* at_;
};

struct Kind {
  const char* name;
  TcpOptions options;
};
void PrintTo(const Kind& kind, std::ostream* out) {
  *out << kind.name;
}

class TcpUnusable : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    registration_ = pair_.share({shared_.at(), shared_.size(), Device{}});
    std::fill(fine_.begin(), fine_.end(), 'f');
  }
  // The link carries both kinds of transfers.
  void expectServed() {
    std::string back(fine_.size(), '.');
    const Status put = pair_.run(OpKind::put, fine_.data(), 0, fine_.size());
    const Status got = pair_.run(OpKind::get, back.data(), 0, back.size());
    EXPECT_TRUE(put.ok()) << put.toString();
    EXPECT_TRUE(got.ok()) << got.toString();
    EXPECT_EQ(back, fine_);
  }
  // Among others that are posted with it, before and behind.
  Status amongOthers(OpKind kind, void* local, size_t size, uint64_t offset = kShared / 2) {
    const auto outcomes = pair_.run({{OpKind::put, fine_.data(), 0, fine_.size()},
                                     {kind, local, offset, size},
                                     {OpKind::put, fine_.data(), 100, 100},
                                     {OpKind::get, fine_.data(), 200, 100}});
    for (size_t other : {0, 2, 3}) EXPECT_TRUE(outcomes[other].ok()) << outcomes[other].toString();
    return outcomes[1];
  }

  Pages shared_{kShared, '.'};
  std::string fine_ = std::string(10000, 'f');
  TcpPair pair_{GetParam().options, GetParam().options};
  std::unique_ptr<Registration> registration_;
};

TEST_P(TcpUnusable, aPutFromProtectedMemoryFailsAlone) {
  for (size_t size : {size_t{8}, kPage, size_t{20000}, size_t{300000}, size_t{500000}}) {
    Pages memory(size_t{1} << 20);
    memory.allow(0, memory.size(), PROT_NONE);
    const Status status = amongOthers(OpKind::put, memory.at(), size);
    EXPECT_EQ(status.code(), Code::invalidArgument) << status.toString();
    const auto from = reinterpret_cast<uintptr_t>(memory.at());
    EXPECT_THAT(status.message(),
                StartsWith(fmt::format("put of {} bytes from {:#x} to {:#x}: this "
                                       "process cannot read all of that memory",
                                       size, from, from + size)));
    expectServed();
  }
}

TEST_P(TcpUnusable, aPutThatEndsInAHoleFailsAlone) {
  for (size_t size : {size_t{3000}, size_t{20000}, size_t{300000}, size_t{500000}}) {
    Pages memory(size_t{1} << 20);
    memory.unmap(memory.size() / 2, kPage);
    char* const from = memory.at(memory.size() / 2 - size + 10);
    EXPECT_EQ(amongOthers(OpKind::put, from, size).code(), Code::invalidArgument);
    expectServed();
  }
}

TEST_P(TcpUnusable, aGetIntoMemoryThatCannotBeWrittenFailsAlone) {
  for (size_t size : {size_t{8}, kPage, size_t{20000}, size_t{300000}, size_t{500000}}) {
    Pages memory(size_t{1} << 20);
    // Everything, and only where it ends.
    for (size_t usable : {size_t{0}, size / 2}) {
      memory.allow(0, memory.size(), PROT_READ | PROT_WRITE);
      memory.allow(memory.size() / 2, memory.size() / 2, PROT_READ);
      char* const into = memory.at(memory.size() / 2 - usable);
      const Status status = amongOthers(OpKind::get, into, size);
      EXPECT_EQ(status.code(), Code::invalidArgument) << status.toString();
      EXPECT_THAT(status.message(), HasSubstr("this process cannot write all of that memory"));
      expectServed();
    }
  }
}

TEST_P(TcpUnusable, theOwnersMemoryThatCannotBeWrittenOrReadFailsTheTransferAlone) {
  std::string local(500000, 'l');
  for (size_t size : {size_t{8}, kPage, size_t{20000}, size_t{300000}, size_t{500000}}) {
    for (size_t usable : {size_t{0}, size / 2}) {
      const size_t offset = kShared / 2 - usable;
      for (OpKind kind : {OpKind::put, OpKind::get}) {
        shared_.allow(kShared / 2, kShared / 2, kind == OpKind::put ? PROT_READ : PROT_NONE);
        const Status status = amongOthers(kind, local.data(), size, offset);
        EXPECT_EQ(status.code(), Code::failed) << status.toString();
        EXPECT_THAT(status.message(),
                    HasSubstr(fmt::format("{} of {} bytes at remote offset {}: the peer cannot {} "
                                          "all of that memory",
                                          kind == OpKind::put ? "put" : "get", size, offset,
                                          kind == OpKind::put ? "write" : "read")));
        expectServed();
      }
      shared_.allow(kShared / 2, kShared / 2, PROT_READ | PROT_WRITE);
    }
  }
  const Status again = amongOthers(OpKind::put, local.data(), local.size());
  EXPECT_TRUE(again.ok()) << again.toString();
  EXPECT_EQ(std::string(shared_.at(kShared / 2), local.size()), local);
}

INSTANTIATE_TEST_SUITE_P(Tcp, TcpUnusable,
                         testing::Values(Kind{"plain", {}}, Kind{"tls", {.tls = true}},
                                         Kind{"checked", {.integrity = true}}),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace hmc::tcp
