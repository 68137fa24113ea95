#include "bench/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <fmt/core.h>

namespace hmc::bench {

Result<SharedMemory> SharedMemory::create(size_t bytes) {
  tool::Fd fd(memfd_create("hmc-bench", MFD_CLOEXEC));
  if (!fd || ftruncate(fd.get(), static_cast<off_t>(bytes + kFlagBytes)) != 0)
    return tool::systemError(fmt::format("make {} bytes of shared memory", bytes));
  return map(std::move(fd), bytes);
}

Result<SharedMemory> SharedMemory::open(const std::string& path, size_t bytes) {
  tool::Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return tool::systemError("open " + path);
  return map(std::move(fd), bytes);
}

Result<SharedMemory> SharedMemory::map(tool::Fd fd, size_t bytes) {
  // Faulted in now: the first touch of a page is not part of what is measured.
  void* base = mmap(nullptr, bytes + kFlagBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                    fd.get(), 0);
  if (base == MAP_FAILED) return tool::systemError("map shared memory for the ceilings");
  return SharedMemory(std::move(fd), static_cast<char*>(base), bytes);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)), base_(std::exchange(other.base_, nullptr)), bytes_(other.bytes_) {}

SharedMemory::~SharedMemory() {
  if (base_ != nullptr) munmap(base_, bytes_ + kFlagBytes);
}

std::string SharedMemory::path() const {
  return fmt::format("/proc/{}/fd/{}", getpid(), fd_.get());
}

std::atomic<uint64_t>& SharedMemory::flag(int side) const {
  // Far enough apart that no prefetcher fetches one with the other.
  return *reinterpret_cast<std::atomic<uint64_t>*>(base_ + side * (kFlagBytes / kFlags));
}

void SharedMemory::reset() const {
  flag(0).store(0);
  flag(1).store(0);
}

bool SharedMemory::await(int side, uint64_t round) const {
  constexpr uint64_t kMostPolls = uint64_t{1}
                                  << 33;  // some seconds; reading a clock would be measured
  const std::atomic<uint64_t>& line = flag(side);
  for (uint64_t polls = 0; line.load(std::memory_order_acquire) != round; ++polls) {
    if (polls == kMostPolls) return false;
  }
  return true;
}

bool SharedMemory::ping(uint64_t first, uint64_t rounds) const {
  for (uint64_t round = first; round < first + rounds; ++round) {
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
