#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "hmc/pool.h"
#include "memory/region.h"
#include "node/node_impl.h"
#include "pool/address_space.h"
#include "pool/copier.h"
#include "pool/copy_state.h"

namespace hmc::pool {

// The copies of one startCopy(), on their way to what makes them. Runs of copies that stay within
// the same memory are looked up once. For one thread.
class CopyBatch {
 public:
  // All outlive it.
  CopyBatch(const Copier& copier, NodeImpl& node, Members& members, PoolCopyState& state)
      : copier_(copier), node_(node), members_(members), state_(state) {}

  void run(std::span<const PoolCopy> copies, Deadline deadline);

 private:
  // One end is a peer's slot, the other memory that this process sees.
  struct Transfer {
    size_t element;
    OpKind kind;
    const CopyEnd* far;
    uint64_t farOffset;
    Region local;
    const std::shared_ptr<RemoteMapping>* seen;  // `local` is a peer's slot that is mapped here
    const std::shared_ptr<LocalMemory>* own;     // around `local`, once it is known
    uint64_t ownOffset;
    const RemoteMapping* seenMapping() const { return seen ? seen->get() : nullptr; }
  };
  // Transfers that the engine makes together.
  struct List {
    const Transfer* first = nullptr;
    std::vector<Block> blocks;
    std::vector<size_t> elements;
    bool takes(const Transfer& one) const;
    void add(const Transfer& one);
    void reserve(size_t count) {
      blocks.reserve(count);
      elements.reserve(count);
    }
  };

  // Where copies start, or where they end.
  struct Side {
    const CopyEnd* last = nullptr;  // that was known: one of ends_
    CopyEnd unknown;
  };

  // The processor cannot make this one by itself, as far as its ends are known already.
  bool needsEngine(const PoolCopy& copy) const;
  Result<const CopyEnd*> endAt(Side& side, const void* address, size_t size, Deadline deadline);
  Status plan(const PoolCopy& copy, size_t element, Deadline deadline);
  // More transfers between the same two ends as the last one, as far as they go. How many.
  size_t planAlike(std::span<const PoolCopy> copies, size_t firstElement);
  void addTransfer(const PoolCopy& copy, size_t element, const CopyEnd& to, const CopyEnd& from);
  void registerUnknown();
  void registerTogether(std::span<Transfer*> run, const Region& region);
  std::vector<List> makeLists() const;
  void start(List& list);

  const Copier& copier_;
  NodeImpl& node_;
  Members& members_;
  PoolCopyState& state_;
  std::deque<CopyEnd> ends_;
  Side to_;
  Side from_;
  std::deque<std::shared_ptr<LocalMemory>> registered_;  // for these copies alone
  std::vector<Transfer> transfers_;
  std::vector<std::unique_ptr<PoolCopyPart>> others_;
};

}  // namespace hmc::pool
