#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <memory>

namespace hmc {

inline constexpr size_t kHugePage = size_t{2} << 20;

struct ReservedRange;

// Owns a range of the address space. At the end it is unmapped, or where it is a part of a
// reservation, set aside again: never a hole that somebody else could be given.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* ptr, size_t size, std::shared_ptr<ReservedRange> within = nullptr)
      : memory_(static_cast<char*>(ptr), End{size, std::move(within)}) {}

  char* get() const { return memory_.get(); }
  size_t size() const { return memory_.get_deleter().size; }

 private:
  struct End {
    size_t size;
    std::shared_ptr<ReservedRange> within;
    void operator()(char* ptr) const;
  };
  std::unique_ptr<char, End> memory_;
};

}  // namespace hmc
