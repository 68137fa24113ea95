#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "hmc/pool.h"
#include "regions.h"

namespace hmc::python {

// Copies on their way and the objects whose memory they use.
struct Batch {
  Handle<PoolTicket> ticket;
  std::vector<pybind11::object> objects;
  size_t count = 0;

  // A thread that waits holds the ticket for a while; whoever cancels must get a turn.
  std::mutex mutex;
  std::condition_variable changed;
  bool cancelling = false;  // guarded by mutex
  bool cancelled = false;   // guarded by mutex

  Batch(PoolTicket started, std::vector<pybind11::object> used, size_t size)
      : ticket(std::move(started)), objects(std::move(used)), count(size) {}

  // Without the GIL.
  bool done() { return ticket->done(); }
  Status wait(Timeout timeout);
  void cancel();
};

// What a Pool, its slots, views of those and its transfers share.
struct PoolUse {
  std::map<void*, pybind11::object> registered;  // until the Pool is gone
  Handle<Pool> pool;
  // Their PoolTransfer went before they were done: nothing else keeps the memory alive.
  std::vector<std::shared_ptr<Batch>> dropped;

  explicit PoolUse(Handle<Pool> joined) : pool(std::move(joined)) {}
  PoolUse(const PoolUse&) = delete;
  PoolUse& operator=(const PoolUse&) = delete;
  ~PoolUse();
  void forgetDone();
};

// The class behind hmc.Pool.
struct PoolOf {
  std::shared_ptr<PoolUse> use;
  Pool& operator*() const { return *use->pool; }
  Pool* operator->() const { return &*use->pool; }
};

// The class behind hmc.Slot: what it was when it was asked for.
struct SlotOf {
  std::shared_ptr<PoolUse> use;
  PoolSlot whole;
  Range range;
  char* address() const { return static_cast<char*>(whole.address) + range.offset; }
};
std::string title(const SlotOf& slot);

// The class behind hmc.PoolTransfer.
struct PoolTransferOf {
  std::shared_ptr<PoolUse> use;
  std::shared_ptr<Batch> batch;
  PoolTransferOf(std::shared_ptr<PoolUse> pool, std::shared_ptr<Batch> copies)
      : use(std::move(pool)), batch(std::move(copies)) {}
  PoolTransferOf(PoolTransferOf&&) noexcept = default;
  PoolTransferOf& operator=(PoolTransferOf&&) = delete;
  ~PoolTransferOf();
};

PoolSpace spaceFrom(const std::string& word);
const char* spaceWord(PoolSpace space);

void bindSlot(pybind11::module_& module);
void bindPoolTransfer(pybind11::module_& module);
void bindPoolCopies(PublicClass<PoolOf>& pool);
void bindPool(pybind11::module_& module);
void bindGathering(pybind11::module_& module);
void bindCollective(pybind11::module_& module);

}  // namespace hmc::python
