// What ranks of a symmetric object do through the store, whichever host they are on.

#include <charconv>

#include "base/error.h"
#include "pool/slices.h"
#include "pool/symmetric.h"

namespace hmc::pool {

Result<std::shared_ptr<Symmetric::Gathering>> Symmetric::gatheringOf(const SubGroup& group) {
  if (group.ranks == 0 || group.ranks > options_.ranks || group.rank >= group.ranks) {
    return error(Code::invalidArgument, "rank {} of {} cannot be in a group of {} ranks",
                 group.rank, group.ranks, options_.ranks);
  }
  std::lock_guard lock(mutex_);
  auto& known = gatherings_[group.name];
  if (!known) {
    known = std::make_shared<Gathering>(store_, prefix_ + "group/" + group.name + "/", group);
  }
  if (known->group.rank != group.rank || known->group.ranks != group.ranks) {
    return error(Code::invalidArgument, "this is rank {} of {} in group \"{}\", not {} of {}",
                 known->group.rank, known->group.ranks, group.name, group.rank, group.ranks);
  }
  return known;
}

Status Symmetric::barrierOf(const SubGroup& group, Deadline deadline) {
  HMC_TRY(pool_->checkUsable());
  HMC_ASSIGN(const auto gathering, gatheringOf(group));
  const Turn turn(gathering->collective, Deadline::now());
  if (!turn.mine()) return oneAtATime();
  return inSlices(
      deadline, [&](Deadline slice) { return gathering->rendezvous.barrier(slice); },
      [this] { return interrupted_.load() ? interruption() : Status(); });
}

Status Symmetric::allgatherOf(const SubGroup& group, const void* mine, uint32_t size, void* all,
                              Deadline deadline) {
  HMC_TRY(pool_->checkUsable());
  HMC_TRY(checkShare(size));
  HMC_ASSIGN(const auto gathering, gatheringOf(group));
  const Turn turn(gathering->collective, Deadline::now());
  if (!turn.mine()) return oneAtATime();
  const std::string_view share(static_cast<const char*>(mine), size);
  HMC_ASSIGN(
      const auto shares,
      inSlices(
          deadline, [&](Deadline slice) { return gathering->rendezvous.allgather(share, slice); },
          [this] { return interrupted_.load() ? interruption() : Status(); }));
  return spread(shares, size, static_cast<char*>(all));
}

Result<uint32_t> Symmetric::takeNumber(uint32_t limit, Deadline deadline) {
  HMC_TRY(pool_->checkUsable());
  return numbers_->take(limit, deadline);
}

Status Symmetric::giveNumberBack(uint32_t number, Deadline deadline) {
  HMC_TRY(pool_->checkUsable());
  return numbers_->giveBack(number, deadline);
}

Status Symmetric::onTold(std::function<void(int)> told) {
  HMC_TRY(pool_->checkUsable());
  auto tell = [told = std::move(told)](const std::string& value) {
    int status = 0;
    const char* const end = value.data() + value.size();
    if (std::from_chars(value.data(), end, status).ptr == end) told(status);
  };
  HMC_ASSIGN(auto watch, KeyWatch::start(*store_, prefix_ + "exit", std::move(tell)));
  std::unique_lock lock(mutex_);
  told_.swap(watch);
  lock.unlock();  // the one before ends without the lock
  return Status();
}

Status Symmetric::tellAll(int status, Deadline deadline) {
  HMC_TRY(pool_->checkUsable());
  return store_->set(prefix_ + "exit", std::to_string(status), deadline);
}

}  // namespace hmc::pool
