#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "transport/ipc/process_vm.h"

namespace hmc::ipc {

namespace {

const std::string kNonce = "sixteen bytes ..";
const Lease lease(std::chrono::hours(1));

uint64_t address(const void* at) {
  return reinterpret_cast<uintptr_t>(at);
}

Result<Process> ourselves() {
  return Process::find({getpid(), Fd()}, address(kNonce.data()), kNonce);
}

// Of this process's descriptors for a process's memory, those that can write to it.
int writableMemories() {
  int count = 0;
  for (int fd = 0; fd < 256; ++fd) {
    char target[64] = "";
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    if (readlink(link.c_str(), target, sizeof(target) - 1) < 0) continue;
    const bool memory = std::string(target) == "/proc/" + std::to_string(getpid()) + "/mem";
    if (memory && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY) ++count;
  }
  return count;
}

TEST(ProcessVm, memoryThatIsForReadingIsNotOpenedForWriting) {
  const auto process =
      Process::find({getpid(), Fd()}, address(kNonce.data()), kNonce, Access::read);
  ASSERT_TRUE(process.ok()) << process.status().toString();
  EXPECT_EQ(writableMemories(), 0);
  std::string copy(kNonce.size(), '?');
  EXPECT_TRUE(
      process->move(OpKind::get, copy.data(), address(kNonce.data()), copy.size(), lease).ok());
  EXPECT_EQ(copy, kNonce);
}

// A child that does nothing, with its memory as it was at the fork.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ == 0) {
      for (;;) pause();
    }
  }
  ~Child() { end(); }
  void end() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

}  // namespace

TEST(IpcProcess, movesBytesBothWays) {
  static char there[100] = "before";
  Child child;
  auto process = Process::find({child.pid(), Fd()}, address(kNonce.data()), kNonce);
  ASSERT_TRUE(process.ok()) << process.status().toString();
  char text[] = "written";
  ASSERT_TRUE(process->move(OpKind::put, text, address(there), sizeof(text), lease).ok());
  EXPECT_STREQ(there, "before") << "the child has its own copy";
  char back[sizeof(text)] = "";
  ASSERT_TRUE(process->move(OpKind::get, back, address(there), sizeof(back), lease).ok());
  EXPECT_STREQ(back, "written");
}

TEST(IpcProcess, refusesAProcessWithoutTheNonce) {
  Child child;
  auto process = Process::find({child.pid(), Fd()}, address(kNonce.data()), "another nonce !!");
  EXPECT_EQ(process.status().code(), Code::notFound) << process.status().toString();
  process = Process::find({child.pid(), Fd()}, 8, kNonce);
  EXPECT_EQ(process.status().code(), Code::notFound) << "nothing is mapped there";
  pid_t pid = child.pid();
  child.end();
  process = Process::find({pid, Fd()}, address(kNonce.data()), kNonce);
  EXPECT_EQ(process.status().code(), Code::notFound) << "there is no such process";
}

TEST(IpcProcess, refusesAProcessThatThisPidNamespaceDoesNotHave) {
  const auto process = Process::find({0, Fd()}, address(kNonce.data()), kNonce);
  EXPECT_EQ(process.status().code(), Code::notFound);
  EXPECT_NE(process.status().message().find("pid namespace"), std::string::npos)
      << process.status().message();
}

TEST(IpcProcess, aDeadProcessIsDisconnected) {
  static char there[100];
  Child child;
  auto process = Process::find({child.pid(), Fd()}, address(kNonce.data()), kNonce);
  ASSERT_TRUE(process.ok()) << process.status().toString();
  EXPECT_TRUE(process->alive());
  child.end();
  EXPECT_FALSE(process->alive());
  char byte = 0;
  EXPECT_EQ(process->move(OpKind::put, &byte, address(there), 1, lease).code(), Code::disconnected);
  Process::Piece piece{&byte, address(there), 1};
  EXPECT_FALSE(process->moveAll(OpKind::get, &piece, 1));
}

TEST(IpcProcess, memoryThatEndsEarlyIsAnErrorWithTheNumbers) {
  auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  auto* pages = static_cast<char*>(
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  munmap(pages + page, page);
  auto process = ourselves();
  ASSERT_TRUE(process.ok()) << process.status().toString();
  std::vector<char> local(2 * page, 'x');
  Status status = process->move(OpKind::put, local.data(), address(pages), 2 * page, lease);
  EXPECT_EQ(status.code(), Code::failed) << status.toString();
  EXPECT_NE(status.message().find(std::to_string(2 * page)), std::string::npos);
  EXPECT_TRUE(process->move(OpKind::put, local.data(), address(pages), page, lease).ok());
  munmap(pages, page);
}

TEST(IpcProcess, movesSeveralPiecesInOneCall) {
  auto process = ourselves();
  ASSERT_TRUE(process.ok()) << process.status().toString();
  std::vector<char> source(Process::kMostPieces * 3), target(source.size());
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<char>(i);
  std::vector<Process::Piece> pieces;
  for (size_t i = 0; i < source.size(); i += 3) {
    pieces.push_back({&source[i], address(&target[i]), 3});
  }
  EXPECT_TRUE(process->moveAll(OpKind::put, pieces.data(), pieces.size()));
  EXPECT_EQ(source, target);
  pieces[1].address = 8;
  EXPECT_FALSE(process->moveAll(OpKind::put, pieces.data(), pieces.size()));
}

}  // namespace hmc::ipc
