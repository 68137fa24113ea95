#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

namespace hmc::agent {

inline uint64_t addressOf(const void* data) {
  return reinterpret_cast<uintptr_t>(data);
}

// Ranges of addresses, each with a value. They may overlap; no two begin at the same address.
template <class Value>
class RangeMap {
 public:
  struct Range {
    uint64_t size;
    Value value;
  };
  using Ranges = std::map<uint64_t, Range>;
  using Iterator = typename Ranges::iterator;

  // False, and nothing done, when another begins there.
  bool add(uint64_t begin, uint64_t size, Value value) {
    longest_ = std::max(longest_, size);
    return ranges_.try_emplace(begin, Range{size, std::move(value)}).second;
  }
  void erase(Iterator at) { ranges_.erase(at); }
  void clear() { ranges_.clear(); }

  Iterator begin() { return ranges_.begin(); }
  Iterator end() { return ranges_.end(); }
  bool empty() const { return ranges_.empty(); }
  // The one that begins there.
  Iterator at(uint64_t begin) { return ranges_.find(begin); }
  // One that holds the `size` bytes from that address on; of several the one that begins last.
  Iterator around(uint64_t address, uint64_t size) {
    auto next = ranges_.upper_bound(address);
    while (next != ranges_.begin()) {
      const auto one = std::prev(next);
      const uint64_t offset = address - one->first;
      if (offset >= longest_) break;
      if (offset < one->second.size && size <= one->second.size - offset) return one;
      next = one;
    }
    return ranges_.end();
  }

 private:
  Ranges ranges_;
  uint64_t longest_ = 0;  // no range was ever longer
};

}  // namespace hmc::agent
