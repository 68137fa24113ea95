#include <algorithm>

#include "base/codec.h"
#include "base/error.h"
#include "store/group.h"

namespace hmc::store {

namespace {

constexpr size_t kRankSize = sizeof(uint32_t);
// At the deadline, to ask who did not come.
constexpr std::chrono::milliseconds kLastQuestion{500};
constexpr size_t kMostNamed = 16;

std::vector<uint32_t> ranksIn(const std::string& arrived) {
  std::vector<uint32_t> ranks;
  Reader reader(arrived);
  while (reader.left() >= kRankSize) ranks.push_back(reader.u32());
  return ranks;
}

bool has(const std::vector<uint32_t>& ranks, uint32_t rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

// The order of the keys is that of the ranks.
std::string dataKey(const std::string& round, uint32_t rank) {
  return fmt::format("{}data/{:010}", round, rank);
}

}  // namespace

Rendezvous::Rendezvous(std::shared_ptr<Store> store, std::string prefix, uint32_t rank,
                       uint32_t size)
    : store_(std::move(store)), prefix_(std::move(prefix)), rank_(rank), size_(size) {}

std::string Rendezvous::roundKey(uint64_t round) const {
  return fmt::format("{}/{}/", prefix_, round);
}

Status Rendezvous::barrier(Deadline deadline, const std::stop_token& stop) {
  HMC_TRY(meet(deadline, stop));
  ++round_;
  sent_ = false;
  return Status();
}

Result<std::vector<std::string>> Rendezvous::allgather(std::string_view mine, Deadline deadline,
                                                       const std::stop_token& stop) {
  const std::string round = roundKey(round_);
  HMC_TRY(store_->set(dataKey(round, rank_), mine, deadline));
  HMC_TRY(meet(deadline, stop));
  HMC_ASSIGN(auto entries, store_->list(round + "data/", deadline));
  if (entries.size() != size_) {
    return error(Code::failed,
                 "round {} of {} has data of {} ranks instead of {}: some called another function, "
                 "or the store was restarted",
                 round_, prefix_, entries.size(), size_);
  }
  std::vector<std::string> all;
  all.reserve(size_);
  for (Entry& entry : entries) all.push_back(std::move(entry.value));
  ++round_;
  sent_ = false;
  return all;
}

// Each rank appends itself to one key. Whoever completes it knows that all have left the round
// before, removes that round's keys and opens the gate for all.
Status Rendezvous::meet(Deadline deadline, const std::stop_token& stop) {
  const std::string gate = roundKey(round_) + "open";
  HMC_ASSIGN(const size_t arrived, arrive(deadline));
  if (arrived < size_) {
    const Status late = store_->await(gate, deadline, stop).status();
    return late.code() == Code::deadlineExceeded ? missing(late) : late;
  }
  if (round_ > 0) HMC_TRY(store_->removeAll(roundKey(round_ - 1), deadline));
  return store_->set(gate, "", deadline);
}

Result<size_t> Rendezvous::arrive(Deadline deadline) {
  const std::string key = roundKey(round_) + "arrived";
  const std::string mine = Writer().u32(rank_).take();
  for (;;) {
    // Where an answer was lost, or an earlier call gave up, we may be in it.
    if (sent_) {
      const auto there = store_->get(key, deadline);
      if (!there.ok() && there.status().code() != Code::notFound) return there.status();
      if (there.ok() && has(ranksIn(*there), rank_)) return there->size() / kRankSize;
    }
    sent_ = true;
    const auto size = store_->append(key, mine, deadline);
    if (size.ok()) return *size / kRankSize;
    if (size.status().code() != Code::disconnected) return size.status();
  }
}

Result<std::vector<uint32_t>> Rendezvous::arrived(Deadline deadline) const {
  const auto there = store_->get(roundKey(round_) + "arrived", deadline);
  if (!there.ok() && there.status().code() != Code::notFound) return there.status();
  return ranksIn(there.ok() ? *there : std::string());
}

Status Rendezvous::missing(const Status& late) const {
  const auto come = arrived(kLastQuestion);
  if (!come.ok()) return late;
  const std::vector<uint32_t>& ranks = *come;
  if (!has(ranks, rank_)) {
    return error(Code::deadlineExceeded,
                 "the store was restarted while round {} of {} waited for its ranks; call it again",
                 round_, prefix_);
  }
  std::string names;
  size_t count = 0;
  for (uint32_t rank = 0; rank < size_; ++rank) {
    if (has(ranks, rank)) continue;
    if (++count <= kMostNamed) names += fmt::format("{}{}", names.empty() ? "" : ", ", rank);
  }
  if (count > kMostNamed) names += fmt::format(" and {} more", count - kMostNamed);
  return error(Code::deadlineExceeded,
               "{} of {} ranks did not come to round {} of {} before the deadline: {}", count,
               size_, round_, prefix_, names);
}

}  // namespace hmc::store
