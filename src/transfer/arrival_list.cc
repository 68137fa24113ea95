#include "transfer/arrival_list.h"

#include <sys/eventfd.h>

#include <set>

#include "base/error.h"
#include "transfer/engine.h"

namespace hmc {

Result<std::unique_ptr<ArrivalList>> ArrivalList::create() {
  Fd event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return errnoStatus("making an eventfd for arrivals");
  return std::unique_ptr<ArrivalList>(new ArrivalList(std::move(event)));
}

ArrivalList::~ArrivalList() {
  std::set<Engine*> engines;
  {
    std::lock_guard lock(mutex_);
    for (const Watched& one : watched_) engines.insert(&one.transfer->engine());
  }
  for (Engine* engine : engines) engine->mover().forget(*this);
}

Status ArrivalList::watch(std::shared_ptr<TransferState> transfer, uint64_t id) {
  TransferState* const pending = transfer && !transfer->done() ? transfer.get() : nullptr;
  Entry entry;
  {
    std::lock_guard lock(mutex_);
    watched_.push_back({std::move(transfer), id});
    entry = std::prev(watched_.end());
    if (!pending) arrivedLocked(entry);
  }
  if (!pending) return Status();
  Status status = pending->engine().mover().watch(*pending, *this, entry);
  if (status.ok()) return status;
  std::list<Watched> dropped;
  std::lock_guard lock(mutex_);
  dropped.splice(dropped.end(), watched_, entry);
  return status;
}

std::vector<uint64_t> ArrivalList::take() {
  std::list<Watched> taken;
  {
    std::lock_guard lock(mutex_);
    if (arrived_.empty()) return {};
    taken.swap(arrived_);
    eventfd_t ignored;
    eventfd_read(event_.get(), &ignored);
  }
  std::vector<uint64_t> ids;
  ids.reserve(taken.size());
  for (const Watched& one : taken) ids.push_back(one.id);
  return ids;
}

void ArrivalList::arrived(Entry entry) {
  std::lock_guard lock(mutex_);
  arrivedLocked(entry);
}

void ArrivalList::arrivedLocked(Entry entry) {
  if (arrived_.empty()) eventfd_write(event_.get(), 1);
  arrived_.splice(arrived_.end(), watched_, entry);
}

}  // namespace hmc
