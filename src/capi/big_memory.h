#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "capi/session.h"
#include "hmc/pool.h"
#include "hmc/result.h"
#include "pool/pool_impl.h"
#include "pool/turn.h"

namespace hmc::capi {

// What a copy is said to be: SMEMB_COPY_ values of both levels.
using CopyType = uint32_t;

struct PoolSizes {
  std::array<uint64_t, 2> local{};  // what this process brings, by PoolSpace; multiples of 2 MiB
  std::array<uint64_t, 2> most{};   // what any may bring; 0: what the first of them brings
  std::optional<int> numaNode;
  std::optional<int> hostFile;  // a descriptor of the caller's
};

// A pool of the C interface. Safe from any thread.
class BigMemory {
 public:
  static Result<std::unique_ptr<BigMemory>> create(uint32_t id,
                                                   std::shared_ptr<const Session> session,
                                                   const PoolSizes& sizes);
  // Copies that were started and not waited for end first.
  ~BigMemory();
  BigMemory(const BigMemory&) = delete;
  BigMemory& operator=(const BigMemory&) = delete;

  uint32_t id() const { return id_; }
  bool joined() const { return joined_.load(std::memory_order_acquire); }
  Status join();
  Status leave();

  // Where one pointer per rank is wanted: the device slots, or the host slots where there are none.
  PoolSpace mainSpace() const;
  bool has(PoolSpace space) const { return stride(space) != 0; }
  uint64_t stride(PoolSpace space) const;
  uint64_t localSize(PoolSpace space) const { return local_[static_cast<size_t>(space)]; }
  uint32_t ranks() const { return session_->world->size(); }
  uint32_t ownRank() const { return *session_->world->rank(); }
  void* address(PoolSpace space, uint32_t rank) const { return pool_->addresses().at(space, rank); }
  // notFound when it is in no slot.
  Result<uint32_t> rankOf(const void* address) const;

  // Is that what the addresses are? The sentence says what they are.
  Status checkType(const void* from, const void* to, CopyType type) const;
  Status copy(const PoolCopy& copy) const;
  struct Rows {
    const void* from;
    uint64_t fromPitch;
    void* to;
    uint64_t toPitch;
    uint64_t width;
    uint64_t count;
  };
  Status copyRows(const Rows& rows) const;
  Status copyAll(const std::vector<PoolCopy>& copies) const;
  // Goes on; wait() by the same thread waits for it.
  Status startAll(const std::vector<PoolCopy>& copies);
  Status wait();

  Status registerMemory(void* data, size_t size) {
    return pool_->copier().registerMemory(data, size);
  }
  Status unregisterMemory(void* data) { return pool_->copier().unregisterMemory(data); }

 private:
  BigMemory(uint32_t id, std::shared_ptr<const Session> session, std::shared_ptr<PoolImpl> pool,
            const PoolSizes& sizes);
  static Status otherThread();

  const uint32_t id_;
  const std::shared_ptr<const Session> session_;
  const std::shared_ptr<PoolImpl> pool_;
  const std::array<uint64_t, 2> local_;
  std::atomic<bool> joined_{false};
  pool::Turns membership_;  // of threads that join or leave
  std::mutex mutex_;
  // Guarded by mutex_: those that each thread has started, less the first ones that went well.
  std::map<std::thread::id, std::deque<std::shared_ptr<PoolCopyState>>> started_;
};

// The next multiple of 2 MiB; 0 when there is none.
uint64_t roundUp(uint64_t size);

}  // namespace hmc::capi
