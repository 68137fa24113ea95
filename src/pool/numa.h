#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "hmc/result.h"
#include "memory/region.h"

namespace hmc::pool {

// While it lives, pages that this thread is the first to touch come from that NUMA node.
class OnNumaNode {
 public:
  explicit OnNumaNode(std::optional<int> node);
  ~OnNumaNode();
  OnNumaNode(const OnNumaNode&) = delete;
  OnNumaNode& operator=(const OnNumaNode&) = delete;
  // Why it cannot be.
  const Status& status() const { return status_; }
  // Pages of that memory come from there later, too, whoever touches them first.
  Status keep(const Region& region) const;

 private:
  static constexpr size_t kWords = 16;
  using Mask = std::array<unsigned long, kWords>;

  Status status_;
  bool changed_ = false;
  Mask mask_{};
  int before_ = 0;
  Mask maskBefore_{};
};

}  // namespace hmc::pool
