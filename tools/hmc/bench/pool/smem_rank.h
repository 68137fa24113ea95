#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hmc/result.h"

// One of several ranks that meet in barriers and allgathers, as a user of libmf_smem.so calls them.
// The library is loaded for it: without one, making a rank is an error that says so.
namespace hmc::bench {

inline constexpr uint32_t kShareBytes = 64 * 1024;  // of each rank in an allgather

// For one thread.
class SmemRank {
 public:
  enum class What : uint32_t { barrier, barrierThroughStore, allgather, end };
  // What all ranks do next, as often as `count` says.
  struct Order {
    What what;
    uint32_t count;
  };

  // Opens the store. meet() returns when all ranks have called it.
  static Result<std::unique_ptr<SmemRank>> open(const std::string& store, uint32_t ranks,
                                                uint32_t rank);
  virtual ~SmemRank() = default;
  virtual Status meet() = 0;

  // Of rank 0: what everyone does now. The others wait for it.
  virtual Status give(Order order) = 0;
  virtual Result<Order> take() = 0;
  // All ranks together; checks the bytes of allgathers.
  virtual Status perform(Order order) = 0;
};

}  // namespace hmc::bench
