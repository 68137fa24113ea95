#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "hmc/result.h"

// Memory that both processes of a benchmark map without any library: what a put into a peer's
// memory is compared with, and two cache lines to play ping-pong with.
namespace hmc::bench {

class SharedMemory {
 public:
  static Result<SharedMemory> create(size_t bytes);
  // The other process's view of it, by the name that path() answers there.
  static Result<SharedMemory> open(const std::string& path, size_t bytes);
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;

  std::string path() const;
  size_t size() const { return bytes_; }
  char* data() const { return base_ + kLines; }
  // What a bare put ends with: the flag that says the bytes are there. Side 0 to kFlags - 1.
  static constexpr int kFlags = 16;
  std::atomic<uint64_t>& flag(int side) const;

  // Round trips of a flag, numbered from 1, on the side that begins and on the other one. False
  // when the other side has not answered for seconds. reset() before, when nobody plays.
  void reset() const;
  bool ping(uint64_t rounds) const;
  bool pong(uint64_t rounds) const;

 private:
  static constexpr size_t kLines = 4096;
  SharedMemory(int fd, char* base, size_t bytes) : fd_(fd), base_(base), bytes_(bytes) {}
  static Result<SharedMemory> map(int fd, size_t bytes);
  bool await(int side, uint64_t round) const;

  int fd_;
  char* base_;
  size_t bytes_;
};

}  // namespace hmc::bench
