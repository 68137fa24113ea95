#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent.h"
#include "base/fork_guard.h"
#include "capi/big_memory.h"
#include "capi/handle_table.h"
#include "capi/shared_memory.h"
#include "capi/tls_settings.h"
#include "hmc/device.h"
#include "pool/turn.h"
#include "pool/world.h"

namespace hmc::capi {

// Ids of objects that exist or are being made. Safe from any thread.
class Ids {
 public:
  bool take(uint32_t id) {
    std::lock_guard lock(mutex_);
    return taken_.insert(id).second;
  }
  void giveBack(uint32_t id) {
    std::lock_guard lock(mutex_);
    taken_.erase(id);
  }

 private:
  std::mutex mutex_;
  std::set<uint32_t> taken_;  // guarded by mutex_
};

// An id while its object is being made: given back unless there is an object in the end.
class IdHold {
 public:
  IdHold(Ids& ids, uint32_t id) : ids_(ids), id_(id), held_(ids.take(id)) {}
  ~IdHold() {
    if (held_) ids_.giveBack(id_);
  }
  IdHold(const IdHold&) = delete;
  IdHold& operator=(const IdHold&) = delete;
  bool held() const { return held_; }
  // From now on it is the object's.
  void pass() { held_ = false; }

 private:
  Ids& ids_;
  const uint32_t id_;
  bool held_;
};

// What the functions of the C interface work on: one for each process, because they have no other
// handle. Safe from any thread.
class Library {
 public:
  // A child of a process that had one gets a new one; what its parent had stays untouched.
  static Library& get();

  std::atomic<bool> initialised{false};
  pool::Turns changes;  // of threads in init or uninit of BM, SHM or all
  pool::Stores stores;
  TlsSettings tls;

  std::shared_ptr<const Session> bm() const { return read(bm_); }
  std::shared_ptr<const Session> shm() const { return read(shm_); }
  void setBm(std::shared_ptr<const Session> session) { (void)write(bm_, std::move(session)); }
  void setShm(std::shared_ptr<const Session> session) { (void)write(shm_, std::move(session)); }
  // Serves it until closeAll().
  void keep(std::shared_ptr<pool::ServedStore> served);

  HandleTable<BigMemory> pools;
  Ids poolIds;
  HandleTable<SharedMemory> objects;
  Ids objectIds;
  HandleTable<agent::Agent> engines;
  std::atomic<bool> transInitialised{false};

  void destroyPool(void* handle);
  Status destroyObject(void* handle);
  void destroyEngine(void* handle);
  // What other threads make meanwhile goes as well: whoever adds something looks at bm() or shm()
  // afterwards.
  void closeBm();
  void closeShm();
  void closeTrans();
  void closeAll();

 private:
  using SessionPtr = std::shared_ptr<const Session>;
  SessionPtr read(const SessionPtr& from) const {
    std::lock_guard lock(mutex_);
    return from;
  }
  // Answers what was there: it may take a while to end, so not with the lock.
  SessionPtr write(SessionPtr& to, SessionPtr session) {
    std::lock_guard lock(mutex_);
    return std::exchange(to, std::move(session));
  }

  const ForkGuard fork_;
  mutable std::mutex mutex_;
  SessionPtr bm_;                                         // guarded by mutex_
  SessionPtr shm_;                                        // guarded by mutex_
  std::vector<std::shared_ptr<pool::ServedStore>> kept_;  // guarded by mutex_
};

// While it lives, this thread is in a function of the program that we have called.
class InCallback {
 public:
  InCallback();
  ~InCallback();
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
};

// The turn of a thread that starts or ends things. Others wait for theirs, except in a callback:
// whoever has the turn may be waiting for the callback to end.
class ChangeTurn : public pool::Turn {
 public:
  ChangeTurn(Library& library, Deadline deadline);
};

}  // namespace hmc::capi
