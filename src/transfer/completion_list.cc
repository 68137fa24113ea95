#include "transfer/completion_list.h"

#include <sys/eventfd.h>

#include <set>

#include "base/error.h"
#include "transfer/engine.h"

namespace hmc {

Result<std::unique_ptr<CompletionList>> CompletionList::create() {
  Fd event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return errnoStatus("making an eventfd for a completion queue");
  return std::unique_ptr<CompletionList>(new CompletionList(std::move(event)));
}

CompletionList::~CompletionList() {
  std::set<Engine*> engines;
  {
    std::lock_guard lock(mutex_);
    for (const Watched& one : watched_) engines.insert(&one.transfer->engine());
  }
  for (Engine* engine : engines) engine->progressThread().forget(*this);
}

Status CompletionList::watch(std::shared_ptr<TransferState> transfer, uint64_t id) {
  TransferState* const pending = transfer && !transfer->done() ? transfer.get() : nullptr;
  Entry entry;
  {
    std::lock_guard lock(mutex_);
    watched_.push_back({std::move(transfer), id});
    entry = std::prev(watched_.end());
    if (!pending) arrivedLocked(entry);
  }
  if (!pending) return Status();
  Status status = pending->engine().progressThread().watch(*pending, *this, entry);
  if (status.ok()) return status;
  std::list<Watched> dropped;
  std::lock_guard lock(mutex_);
  dropped.splice(dropped.end(), watched_, entry);
  return status;
}

std::vector<uint64_t> CompletionList::take() {
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

void CompletionList::arrived(Entry entry) {
  std::lock_guard lock(mutex_);
  arrivedLocked(entry);
}

void CompletionList::arrivedLocked(Entry entry) {
  if (arrived_.empty()) eventfd_write(event_.get(), 1);
  arrived_.splice(arrived_.end(), watched_, entry);
}

}  // namespace hmc
