#include "bench/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/core.h>

namespace hmc::bench {

namespace {

Status failure(const std::string& what) {
  return Status(Code::failed, fmt::format("{}: {}", what, std::strerror(errno)));
}

}  // namespace

Result<SharedMemory> SharedMemory::create(size_t bytes) {
  int fd = memfd_create("hmc-bench", MFD_CLOEXEC);
  if (fd < 0) return failure("making shared memory for the ceilings");
  if (ftruncate(fd, static_cast<off_t>(bytes + kLines)) != 0) {
    close(fd);
    return failure(fmt::format("making {} bytes of shared memory", bytes));
  }
  return map(fd, bytes);
}

Result<SharedMemory> SharedMemory::open(const std::string& path, size_t bytes) {
  int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return failure("opening " + path);
  return map(fd, bytes);
}

Result<SharedMemory> SharedMemory::map(int fd, size_t bytes) {
  // Faulted in at once: the first touch of a page is no part of what is measured.
  void* base =
      mmap(nullptr, bytes + kLines, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (base == MAP_FAILED) {
    Status status = failure("mapping shared memory for the ceilings");
    close(fd);
    return status;
  }
  return SharedMemory(fd, static_cast<char*>(base), bytes);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      base_(std::exchange(other.base_, nullptr)),
      bytes_(other.bytes_) {}

SharedMemory::~SharedMemory() {
  if (base_ != nullptr) munmap(base_, bytes_ + kLines);
  if (fd_ >= 0) close(fd_);
}

std::string SharedMemory::path() const {
  return fmt::format("/proc/{}/fd/{}", getpid(), fd_);
}

std::atomic<uint64_t>& SharedMemory::flag(int side) const {
  // Far enough apart that no prefetcher takes the one along with the other.
  return *reinterpret_cast<std::atomic<uint64_t>*>(base_ + side * (kLines / kFlags));
}

void SharedMemory::reset() const {
  flag(0).store(0);
  flag(1).store(0);
}

bool SharedMemory::await(int side, uint64_t round) const {
  constexpr uint64_t kLooks = uint64_t{1} << 33;  // some seconds; asking a clock would be measured
  const std::atomic<uint64_t>& line = flag(side);
  for (uint64_t looks = 0; line.load(std::memory_order_acquire) != round; ++looks) {
    if (looks == kLooks) return false;
  }
  return true;
}

bool SharedMemory::ping(uint64_t rounds) const {
  for (uint64_t round = 1; round <= rounds; ++round) {
    flag(0).store(round, std::memory_order_release);
    if (!await(1, round)) return false;
  }
  return true;
}

bool SharedMemory::pong(uint64_t rounds) const {
  for (uint64_t round = 1; round <= rounds; ++round) {
    if (!await(0, round)) return false;
    flag(1).store(round, std::memory_order_release);
  }
  return true;
}

}  // namespace hmc::bench
