#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hmc::pool {

inline constexpr uint32_t kLargestContext = 65536;
inline constexpr uint32_t kLargestShare = 65536;  // of one rank in an allgather

// What every rank of a symmetric object keeps for the others, in its host slot. Ranks of one host
// have all of them mapped. Zero when it is new. `departed` has a word for each rank behind it.
struct ControlPage {
  // One rank signals, the owner waits: the number of a barrier, twice, and 1 while the owner
  // sleeps.
  struct alignas(64) Signal {
    std::atomic<uint32_t> value;
  };
  static constexpr size_t kRounds = 16;  // of a barrier of 65535 ranks

  // The same for barriers of the device side, whose words smem_shm_device.h knows by their places.
  struct DeviceSync {
    Signal passed;  // the last barrier that the owner has passed
    std::array<Signal, kRounds> signals;
  };

  // For the device side.
  uint32_t id;
  uint32_t rank;
  uint32_t ranks;
  std::atomic<uint32_t> contextSize;
  uint64_t symmetricSize;
  uint64_t base;

  std::array<Signal, kRounds> signals;
  DeviceSync deviceSync;
  alignas(4096) char context[kLargestContext];
  alignas(4096) uint32_t shareSize;  // what we give in an allgather
  alignas(64) char share[kLargestShare];

  // By rank: 0, or 1 + the last barrier that it had passed when it went.
  std::atomic<uint32_t>* departed() { return reinterpret_cast<std::atomic<uint32_t>*>(this + 1); }
  static size_t bytes(uint32_t ranks) {
    return sizeof(ControlPage) + ranks * sizeof(std::atomic<uint32_t>);
  }
};

}  // namespace hmc::pool
