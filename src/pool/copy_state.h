#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/interface.h"
#include "hmc/node.h"
#include "hmc/result.h"

namespace hmc {

// Copies of a batch that follow each other in it.
struct PoolElements {
  size_t first;
  size_t count;
};

// Some copies of a batch that end together.
class PoolCopyPart : public Interface {
 public:
  explicit PoolCopyPart(std::vector<PoolElements> which) : elements(std::move(which)) {}
  // Moves it along; true when it has ended. Never blocks.
  virtual bool done() = 0;
  // deadlineExceeded while it is on its way.
  virtual Status wait(Deadline deadline) = 0;
  virtual Status cancel() = 0;

  const std::vector<PoolElements> elements;
};

// A batch on its way. Safe from any thread; one at a time waits.
class PoolCopyState {
 public:
  explicit PoolCopyState(size_t count) : outcomes_(count) {}

  // Before it is handed out.
  void add(std::unique_ptr<PoolCopyPart> part) { parts_.push_back(std::move(part)); }
  // What nobody settles, and no part, has ended well.
  void settle(const PoolElements& elements, const Status& outcome);

  bool done();
  Status wait(Deadline deadline);
  Status cancel();
  const std::vector<Status>& outcomes() const { return outcomes_; }

 private:
  void endLocked(size_t part, const Status& outcome);
  Status firstFailure() const;

  std::mutex mutex_;
  std::vector<std::unique_ptr<PoolCopyPart>> parts_;  // guarded by mutex_: those on their way
  std::vector<Status> outcomes_;                      // written under mutex_
  bool failed_ = false;                               // one of them at least; the same
};

}  // namespace hmc
