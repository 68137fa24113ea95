#include "transfer/completion_list.h"

#include "transfer/engine.h"

namespace hmc {

Result<std::unique_ptr<CompletionList>> CompletionList::create() {
  HMC_ASSIGN(EventFd event, EventFd::create("a completion queue"));
  return std::unique_ptr<CompletionList>(new CompletionList(std::move(event)));
}

CompletionList::~CompletionList() {
  std::vector<Watched*> pending;
  {
    std::lock_guard lock(mutex_);
    for (Watched& one : watched_) pending.push_back(&one);
  }
  for (Watched* one : pending)
    one->transfer->engine().progressThread().forget(one->transfer->id, *one);
}

Status CompletionList::watch(std::shared_ptr<TransferState> transfer, uint64_t id) {
  Watched* one = nullptr;
  {
    std::lock_guard lock(mutex_);
    one = &watched_.emplace_back(*this, std::move(transfer), id);
    one->self = std::prev(watched_.end());
  }
  if (!one->transfer) {
    onDone(*one);
    return Status();
  }
  const auto self = one->self;
  Status status = one->transfer->engine().progressThread().watch(*one->transfer, *one);
  if (status.ok()) return status;
  std::list<Watched> dropped;
  std::lock_guard lock(mutex_);
  dropped.splice(dropped.end(), watched_, self);
  return status;
}

std::vector<uint64_t> CompletionList::take() {
  std::list<Watched> taken;
  {
    std::lock_guard lock(mutex_);
    if (done_.empty()) return {};
    taken.swap(done_);
    event_.clear();
  }
  std::vector<uint64_t> ids;
  ids.reserve(taken.size());
  for (const Watched& one : taken) ids.push_back(one.id);
  return ids;
}

void CompletionList::onDone(const Watched& one) {
  std::lock_guard lock(mutex_);
  if (done_.empty()) event_.signal();
  done_.splice(done_.end(), watched_, one.self);
}

}  // namespace hmc
