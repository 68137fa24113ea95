#pragma once

// Operations that all ranks of a group take part in: barrier, broadcast, exchanges and reductions
// of host memory. Ranks of one host pass pieces through memory that they share; others put them
// into each other's.

#include "hmc/cpp17.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hmc/export.h"
#include "hmc/node.h"
#include "hmc/result.h"

namespace hmc {

namespace collective {
class GroupImpl;
}

/// What the numbers of a reduction are. float16 is IEEE's half, bfloat16 the upper half of float32;
/// both are added up in float32 and rounded to the nearest after each rank.
enum class DataType : uint8_t {
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  bfloat16,
  float32,
  float64
};

/// Integers wrap around. min and max of a NaN and a number is the NaN.
enum class ReduceOp : uint8_t { sum, product, min, max };

/// A rank, and how it meets the others.
struct CollectiveOptions {
  std::string name = "default";  ///< of the group, the same at all ranks
  uint32_t rank = 0;             ///< 0 to size - 1
  uint32_t size = 1;
  std::string listen = "tcp://127.0.0.1:0";  ///< where other ranks reach us, as in Node::listen()
  /// What a rank sets aside for pieces of the others, in bytes, the same at all ranks.
  size_t memory = size_t{4} << 20;
  /// Asked some 50 times a second while an operation waits; when it says false, the operation ends
  /// with `cancelled`.
  std::function<bool()> goOn;
  NodeOptions node;  ///< its name is the group's affair
};

/// What goes to one rank and comes from it. Its `in` is as long as that rank's `out` for us.
struct ExchangePart {
  const void* out = nullptr;
  size_t outSize = 0;
  void* in = nullptr;
  size_t inSize = 0;
};

/// One rank of a group. All ranks call the same operations in the same order, with arguments that
/// fit; a rank that does something else is named in an error, as is one that has died. An operation
/// that failed or ran into its timeout leaves the group of no use: every later one fails with the
/// same error. Calls of several threads take turns.
class HMC_API Collective {
 public:
  /// Makes our part of the group, which listens from then on.
  [[nodiscard]] static Result<Collective> begin(const CollectiveOptions& options);
  ~Collective();  ///< Leaves: the group is of no use to the others from then on.
  Collective(Collective&&) noexcept;
  Collective& operator=(Collective&&) noexcept;

  uint32_t rank() const;  ///< Ours, from 0 on.
  uint32_t size() const;  ///< How many ranks there are.
  /// For the other ranks, which need it in connect(). Gathering::wait() is one way to pass it on.
  const std::string& address() const;
  /// Everybody's address, by rank. Returns when we are connected to all; a rank that does not come
  /// is named. Once.
  Status connect(const std::vector<std::string>& addresses, Timeout timeout = kDefaultTimeout);

  /// Returns when all ranks have called it.
  Status barrier(Timeout timeout = kDefaultTimeout);
  /// The root's bytes become everybody's.
  Status broadcast(void* data, size_t size, uint32_t root, Timeout timeout = kDefaultTimeout);
  /// parts[r] is for rank r, our own included. The memory of different parts may be the same in
  /// `out`, but no byte of an `in` lies in an `out` or another `in`.
  Status exchange(const std::vector<ExchangePart>& parts, Timeout timeout = kDefaultTimeout);
  /// Everybody's `size` bytes, by rank, in `received`.
  Status allgather(const void* sent, void* received, size_t size,
                   Timeout timeout = kDefaultTimeout);
  /// Part r of `sent`, of `size` bytes, becomes part `rank()` of what rank r received.
  Status alltoall(const void* sent, void* received, size_t size, Timeout timeout = kDefaultTimeout);
  /// The result of all ranks' `data` replaces it. All ranks get the same bits.
  Status allreduce(void* data, size_t count, DataType type, ReduceOp op,
                   Timeout timeout = kDefaultTimeout);
  /// `sent` has `count` numbers for each rank; rank r receives the result of all ranks' part r.
  /// `received` is part rank() of `sent`, or apart from it.
  Status reduceScatter(const void* sent, void* received, size_t count, DataType type, ReduceOp op,
                       Timeout timeout = kDefaultTimeout);
  /// The same for parts that lie anywhere: sent[r] is for rank r.
  Status reduceScatter(const std::vector<const void*>& sent, void* received, size_t count,
                       DataType type, ReduceOp op, Timeout timeout = kDefaultTimeout);

  /// The path to a rank, as RemoteRegion::path() says it.
  std::string path(uint32_t rank) const;
  /// Why a rank is gone; ok while we are connected to it.
  Status status(uint32_t rank) const;

 private:
  explicit Collective(std::unique_ptr<collective::GroupImpl> impl);
  std::unique_ptr<collective::GroupImpl> impl_;
};

/// Bytes of one number.
HMC_API size_t sizeOf(DataType type);

}  // namespace hmc
