#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>

// What the two processes of `hmc litmus` agree on. A round is a slot of some bytes that follow from
// its number, and a signal that they are there. The one who hears the signal looks at the slot:
// bytes of an earlier round are stale.
namespace hmc::litmus {

inline constexpr const char* kRegion = "litmus";
inline constexpr std::chrono::seconds kPatience{60};  // with the other process
inline constexpr uint64_t kServerRank = 0;
inline constexpr uint64_t kClientRank = 1;

inline constexpr uint64_t kBatch = 32;          // rounds that are acknowledged together
inline constexpr uint64_t kSlots = 2 * kBatch;  // so many rounds are under way at most
inline constexpr size_t kSlotBytes = 4096;
inline constexpr size_t kFlags = kSlots * kSlotBytes;     // a cache line for each slot
inline constexpr size_t kChecked = kFlags + kSlots * 64;  // how many rounds the server has checked
inline constexpr size_t kBytes = kChecked + 4096;

inline uint64_t mixed(uint64_t number) {
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9U;
  return number ^ (number >> 27);
}
inline size_t slotOffset(uint64_t round) {
  return (round % kSlots) * kSlotBytes;
}
inline size_t flagOffset(uint64_t round) {
  return kFlags + (round % kSlots) * 64;
}
inline size_t sizeOf(uint64_t round) {
  return sizeof(uint64_t) * (1 + mixed(round) % (kSlotBytes / sizeof(uint64_t)));
}

inline void fill(char* memory, uint64_t round) {
  char* const slot = memory + slotOffset(round);
  for (size_t at = 0; at < sizeOf(round); at += sizeof(uint64_t)) {
    const uint64_t word = mixed(round + at);
    std::memcpy(slot + at, &word, sizeof(word));
  }
}
inline bool isFresh(const char* memory, uint64_t round) {
  const char* const slot = memory + slotOffset(round);
  for (size_t at = 0; at < sizeOf(round); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, slot + at, sizeof(word));
    if (word != mixed(round + at)) return false;
  }
  return true;
}

}  // namespace hmc::litmus
