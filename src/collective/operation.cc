#include "collective/operation.h"

#include "base/error.h"
#include "base/relax.h"
#include "memory/host_copy.h"

namespace hmc::collective {

void Operation::begin(uint64_t number) {
  number_ = number;
  seen_ = group_.inbox().bell().read();
}

bool Operation::send(uint32_t rank, uint32_t phase, size_t offset, const char* data, size_t size) {
  Channel& channel = group_.channel(rank);
  char* room = failure_.ok() ? channel.room() : nullptr;
  if (!room) return false;
  if (size != 0) copyHost(room, data, size);
  const PieceHeader header{number_, offset, signature_, phase, static_cast<uint32_t>(size)};
  if (Status placed = channel.place(header, deadline_); !placed.ok()) fail(rank, placed);
  return true;
}

std::optional<PieceHeader> Operation::head(uint32_t rank) {
  if (!failure_.ok()) return std::nullopt;
  auto header = group_.channel(rank).head();
  // A rank that needs no more of us may be ahead.
  if (!header || isLater(header->operation)) return std::nullopt;
  if (header->operation == number_ && header->signature == signature_ && header->size <= piece()) {
    return header;
  }
  refuse(rank);
  return std::nullopt;
}

void Operation::refuse(uint32_t rank) {
  fail(rank, error(Code::invalidArgument,
                   "rank {} is in another operation than rank {}, which is in operation {} of the "
                   "group, {}: all ranks must call the same operations in the same order, with as "
                   "many bytes, the same type and the same root",
                   rank, this->rank(), number_, name_));
}

// A rank that has left after its part does not need to know.
void Operation::take(uint32_t rank) {
  const Status taken = group_.channel(rank).take(deadline_);
  if (!taken.ok() && taken.code() != Code::disconnected) fail(rank, taken);
}

// Does not yield: among busy processes that costs a turn of theirs, and who sleeps is woken at
// once.
bool Operation::rungSoon() const {
  for (uint32_t i = 0; i < group_.spins(); ++i) {
    if (rung()) return true;
    relax();
  }
  return false;
}

void Operation::fail(uint32_t rank, Status why) {
  if (!failure_.ok()) return;
  const bool named = why.code() == Code::invalidArgument;
  failure_ = named ? std::move(why) : why.within(fmt::format("rank {}", rank));
  blamed_ = rank;
}

// What a rank sent before it went may still be under way when we hear that it is gone, so that is
// believed at the second look.
void Operation::checkRank(uint32_t rank, bool lacking) {
  const Channel& channel = group_.channel(rank);
  const auto blamed = channel.blamed();
  const auto header = channel.head();
  if (lacking && header && isLater(header->operation)) return refuse(rank);
  const Status status = lacking ? channel.peer().status() : Status();
  if (!blamed && status.ok()) return;
  if (!goneNow_) goneNow_ = rank;
  if (gone_ != rank) return;
  if (!blamed || *blamed >= ranks()) return fail(rank, status);
  fail(*blamed, error(Code::disconnected, "rank {} has given up because of it", rank));
}

Status lateStatus(const char* name, const std::vector<uint32_t>& missing) {
  std::string who;
  for (uint32_t rank : missing) who += fmt::format("{}{}", who.empty() ? "" : ", ", rank);
  return error(Code::deadlineExceeded, "rank{} {} did not take part in the {} in time",
               missing.size() == 1 ? "" : "s", who, name);
}

Status cancelledStatus(const char* name) {
  return error(Code::cancelled, "the {} was interrupted", name);
}

}  // namespace hmc::collective
