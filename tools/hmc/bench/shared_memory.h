#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "hmc/result.h"
#include "system_call.h"

// Memory that both processes of a benchmark map without any library: the ceiling of a put into a
// peer's memory, and flags for a ping-pong between two cores.
namespace hmc::bench {

class SharedMemory {
 public:
  static Result<SharedMemory> create(size_t bytes);
  // The other process's mapping, by the path() of the one that created it.
  static Result<SharedMemory> open(const std::string& path, size_t bytes);
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;

  std::string path() const;
  size_t size() const { return bytes_; }
  char* data() const { return base_ + kFlagBytes; }
  // What a bare put ends with: the flag that says the bytes are there. 0 <= side < kFlags.
  static constexpr int kFlags = 16;
  std::atomic<uint64_t>& flag(int side) const;

  // Round trips of a flag, numbered from 1: ping() begins with round `first`, pong() answers. False
  // when the other side has not answered for seconds. reset() comes before, when neither side runs.
  void reset() const;
  bool ping(uint64_t first, uint64_t rounds) const;
  bool pong(uint64_t rounds) const;

 private:
  static constexpr size_t kFlagBytes = 4096;
  SharedMemory(tool::Fd fd, char* base, size_t bytes)
      : fd_(std::move(fd)), base_(base), bytes_(bytes) {}
  static Result<SharedMemory> map(tool::Fd fd, size_t bytes);
  bool await(int side, uint64_t round) const;

  tool::Fd fd_;
  char* base_;
  size_t bytes_;
};

}  // namespace hmc::bench
