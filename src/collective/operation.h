#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "collective/group_impl.h"

namespace hmc::collective {

// One operation under way: sends and takes pieces, and waits for more. What fails is kept, and
// returned by next(). For one thread.
class Operation {
 public:
  Operation(GroupImpl& group, const char* name, uint32_t signature, Deadline deadline)
      : group_(group), name_(name), signature_(signature), deadline_(deadline) {}

  const char* name() const { return name_; }
  void begin(uint64_t number);
  uint32_t rank() const { return group_.rank(); }
  uint32_t ranks() const { return group_.size(); }
  size_t piece() const { return group_.shape().piece; }
  // The rank that many steps to the right.
  uint32_t right(uint32_t steps) const { return (rank() + steps) % ranks(); }

  // Sends a piece if there is room for it.
  bool send(uint32_t rank, uint32_t phase, size_t offset, const char* data, size_t size);
  // The next piece of a rank, if it has arrived and belongs to this operation.
  std::optional<PieceHeader> head(uint32_t rank);
  const char* bytes(uint32_t rank) const { return group_.channel(rank).bytes(); }
  void take(uint32_t rank);
  // The rank sent something that does not fit our arguments.
  void refuse(uint32_t rank);

  // After a round of the above: waits unless something `moved`. lacks(rank) says whether we need
  // something of that rank.
  template <class Lacks>
  Status next(bool moved, Lacks lacks);

  // The rank because of which it failed.
  std::optional<uint32_t> blamed() const { return blamed_; }

 private:
  bool rung() const { return group_.inbox().bell().read() != seen_; }
  // Looks for a while without sleeping.
  bool rungSoon() const;
  void fail(uint32_t rank, Status why);
  void checkRank(uint32_t rank, bool lacking);
  bool isLater(uint64_t operation) const { return operation > number_; }

  GroupImpl& group_;
  const char* const name_;
  const uint32_t signature_;
  const Deadline deadline_;
  uint64_t number_ = 0;
  uint32_t seen_ = 0;  // of our bell
  Status failure_;
  std::optional<uint32_t> blamed_;
  std::optional<uint32_t> gone_;  // as of the last look
  std::optional<uint32_t> goneNow_;
};

// How often a sleeper looks whether all ranks are still there.
inline constexpr std::chrono::milliseconds kLook{20};

Status lateStatus(const char* name, const std::vector<uint32_t>& missing);
Status cancelledStatus(const char* name);

template <class Lacks>
Status Operation::next(bool moved, Lacks lacks) {
  if (!failure_.ok()) return failure_;
  if (!moved && !rungSoon()) {
    const auto began = std::chrono::steady_clock::now();
    group_.inbox().bell().sleep(seen_, earlier(deadline_, kLook));
    group_.slept(std::chrono::steady_clock::now() - began);
    if (!rung()) {
      if (group_.options().goOn && !group_.options().goOn()) return cancelledStatus(name_);
      std::vector<uint32_t> missing;
      goneNow_.reset();
      for (uint32_t rank = 0; rank < ranks(); ++rank) {
        if (rank == this->rank()) continue;
        const bool lacking = lacks(rank);
        if (lacking) missing.push_back(rank);
        checkRank(rank, lacking);
      }
      gone_ = goneNow_;
      if (!failure_.ok()) return failure_;
      if (deadline_.passed()) {
        if (!missing.empty()) blamed_ = missing[0];
        return lateStatus(name_, missing);
      }
    }
  }
  seen_ = group_.inbox().bell().read();
  return Status();
}

template <class Run>
Status GroupImpl::run(const char* name, uint32_t signature, Timeout timeout, Run job) {
  Operation operation(*this, name, signature, Deadline(timeout));
  const std::lock_guard turn(turn_);
  if (Status begun = start(operation); !begun.ok()) return begun;
  return finish(operation, job(operation));
}

}  // namespace hmc::collective
