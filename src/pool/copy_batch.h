#pragma once

#include <list>
#include <map>
#include <memory>
#include <span>
#include <tuple>
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
  // Transfers between a peer's slot and memory of ours, which the engine makes together.
  struct List {
    OpKind kind;
    const CopyEnd* far;
    const std::shared_ptr<LocalMemory>* own;
    const std::shared_ptr<RemoteMapping>* seen;  // `own` is a peer's slot that is mapped here
    std::vector<Block> blocks = {};
    std::vector<PoolElements> elements = {};

    const RemoteMapping* seenMapping() const { return seen ? seen->get() : nullptr; }
    bool isLike(const List& other) const {
      return far->peers == other.far->peers && kind == other.kind && *own == *other.own &&
             seenMapping() == other.seenMapping();
    }
    void join();
  };
  // The same of memory that is not registered yet.
  struct Transfer {
    size_t element;
    OpKind kind;
    const CopyEnd* far;
    uint64_t farOffset;
    Region local;
    const std::shared_ptr<RemoteMapping>* seen;
  };

  // Where copies start, or where they end.
  struct Side {
    const CopyEnd* last = nullptr;  // that was known: one of ends_
    CopyEnd unknown;
  };

  // The processor cannot make this one by itself, as far as its ends are known already.
  bool needsEngine(const PoolCopy& copy) const;
  Result<const CopyEnd*> endAt(Side& side, const void* address, size_t size, Deadline deadline);
  // How many of the first copies it has planned, at least one: `first` is its number in the batch.
  size_t plan(std::span<const PoolCopy> copies, size_t first, Deadline deadline);
  Status planSome(std::span<const PoolCopy> copies, size_t first, Deadline deadline,
                  size_t& planned);
  // The first copy, and those behind it that go between the same two ends: one by one they would
  // cost more than copying them. How many.
  size_t addTransfers(std::span<const PoolCopy> copies, size_t first, const CopyEnd& to,
                      const CopyEnd& from);
  // The one that such a list, which is empty, is joined with.
  List& listLike(const List& wanted);
  void registerUnknown();
  void registerTogether(std::span<const Transfer> run, const Region& region);
  void start(List& list);

  const Copier& copier_;
  NodeImpl& node_;
  Members& members_;
  PoolCopyState& state_;
  std::list<CopyEnd> ends_;
  Side to_;
  Side from_;
  std::list<std::shared_ptr<LocalMemory>> registered_;  // for these copies alone
  std::vector<Transfer> unknown_;
  std::vector<List> lists_;
  size_t lastList_ = 0;
  using Key = std::tuple<const RemoteMapping*, OpKind, const LocalMemory*, const RemoteMapping*>;
  std::map<Key, size_t> known_;  // indexes of lists_
  std::vector<std::unique_ptr<PoolCopyPart>> others_;
};

}  // namespace hmc::pool
