// What ranks of a symmetric object do through the store, whichever host they are on.

#include <algorithm>
#include <charconv>
#include <set>

#include "base/error.h"
#include "pool/symmetric.h"

namespace hmc::pool {

namespace {

std::optional<uint32_t> numberIn(std::string_view text) {
  uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  return problem == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

}  // namespace

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

// So that others know when we are the one who died.
Status Symmetric::introduce(Gathering& gathering, Deadline deadline) const {
  if (gathering.introduced) return Status();
  const std::string key =
      prefix_ + "who/" + gathering.group.name + "/" + std::to_string(gathering.group.rank);
  HMC_TRY(store_->set(key, std::to_string(options_.rank), deadline));
  gathering.introduced = true;
  return Status();
}

Status Symmetric::hearIntroductions(Gathering& gathering, Deadline deadline) const {
  if (gathering.ranks.size() == gathering.group.ranks) return Status();
  const std::string prefix = prefix_ + "who/" + gathering.group.name + "/";
  HMC_ASSIGN(const auto entries, store_->list(prefix, deadline));
  for (const store::Entry& entry : entries) {
    const auto within = numberIn(std::string_view(entry.key).substr(prefix.size()));
    const auto among = numberIn(entry.value);
    if (within && among) gathering.ranks[*within] = *among;
  }
  return Status();
}

std::set<uint32_t> Symmetric::toldDeaths() {
  const auto lost = pool_->members().lost();
  std::lock_guard lock(mutex_);
  // One that came back can die again.
  std::erase_if(toldDeaths_, [&](uint32_t rank) { return lost.count(rank) == 0; });
  return toldDeaths_;
}

Status Symmetric::rememberDeaths(Status outcome) {
  if (outcome.code() != Code::disconnected) return outcome;
  const auto lost = pool_->members().lost();
  std::lock_guard lock(mutex_);
  toldDeaths_.insert(lost.begin(), lost.end());
  return outcome;
}

// Nobody knows who the ranks of a group are before each has called once. So a rank that dies before
// may be one of them, and then the others would wait in vain. Each process is told of a death once:
// afterwards it is up to the caller whom it waits for.
Status Symmetric::checkStrangers(const Gathering& gathering, const std::set<uint32_t>& told) {
  if (gathering.ranks.size() == gathering.group.ranks) return Status();
  auto lost = pool_->members().lost();
  for (const auto& [within, among] : gathering.ranks) lost.erase(among);
  for (uint32_t rank : told) lost.erase(rank);
  if (lost.empty()) return Status();
  std::lock_guard lock(mutex_);
  toldDeaths_.insert(lost.begin(), lost.end());
  return error(
      Code::disconnected,
      "rank {} is gone and may be one that group \"{}\" waits for; call again if it is not",
      *lost.begin(), gathering.group.name);
}

// A rank that is gone and has not come will not.
Status Symmetric::checkGathering(Gathering& gathering, const std::set<uint32_t>& told,
                                 Deadline deadline) {
  if (interrupted_.stop_requested()) return interruption();
  const auto here = pool_->members().ranks();
  if (here.size() == options_.ranks) return Status();
  HMC_TRY(hearIntroductions(gathering, deadline));
  HMC_TRY(checkStrangers(gathering, told));
  // Those that said that they leave count here, too.
  std::set<uint32_t> strangers(here.begin(), here.end());
  for (const auto& [within, among] : gathering.ranks) strangers.erase(among);
  if (gathering.group.ranks - gathering.ranks.size() > strangers.size()) {
    return error(Code::disconnected, "a rank of group \"{}\" is gone before it came",
                 gathering.group.name);
  }
  HMC_ASSIGN(const auto come, gathering.rendezvous.arrived(deadline));
  for (const auto& [within, among] : gathering.ranks) {
    if (!std::binary_search(here.begin(), here.end(), among) &&
        std::find(come.begin(), come.end(), within) == come.end()) {
      return error(Code::disconnected,
                   "rank {}, which is {} in group \"{}\", is gone and did not "
                   "come",
                   among, within, gathering.group.name);
    }
  }
  return Status();
}

Status Symmetric::barrierOf(const SubGroup& group, Deadline deadline) {
  HMC_TRY(pool_->checkUsable());
  HMC_ASSIGN(const auto gathering, gatheringOf(group));
  const Turn turn(gathering->collective, Deadline::now());
  if (!turn.mine()) return oneAtATime();
  const auto told = toldDeaths();
  HMC_TRY(introduce(*gathering, deadline));
  return inSlices(
      deadline, [this] { return wake(); },
      [&](Deadline slice, const std::stop_token& stop) {
        return gathering->rendezvous.barrier(slice, stop);
      },
      [&] { return checkGathering(*gathering, told, deadline); });
}

Status Symmetric::allgatherOf(const SubGroup& group, const void* mine, uint32_t size, void* all,
                              Deadline deadline) {
  HMC_TRY(pool_->checkUsable());
  HMC_TRY(checkShare(size));
  HMC_ASSIGN(const auto gathering, gatheringOf(group));
  const Turn turn(gathering->collective, Deadline::now());
  if (!turn.mine()) return oneAtATime();
  const std::string_view share(static_cast<const char*>(mine), size);
  const auto told = toldDeaths();
  HMC_TRY(introduce(*gathering, deadline));
  HMC_ASSIGN(const auto shares, inSlices(
                                    deadline, [this] { return wake(); },
                                    [&](Deadline slice, const std::stop_token& stop) {
                                      return gathering->rendezvous.allgather(share, slice, stop);
                                    },
                                    [&] { return checkGathering(*gathering, told, deadline); }));
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
