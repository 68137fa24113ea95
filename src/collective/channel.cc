#include "collective/channel.h"

#include <array>
#include <utility>

#include "base/error.h"

namespace hmc::collective {

namespace {

// The counters of a lane by the letters that notes call them.
struct Named {
  char letter;
  Inbox::Word Inbox::Lane::*word;
};
constexpr std::array<Named, 3> kWords{
    {{'a', &Inbox::Lane::arrived}, {'t', &Inbox::Lane::taken}, {'b', &Inbox::Lane::blamed}}};

}  // namespace

Channel::Channel(Peer peer, RemoteRegion theirs, LocalRegion outbox, Inbox mine, Inbox::Shape shape,
                 uint32_t rank, uint32_t self)
    : peer_(std::move(peer)),
      theirs_(std::move(theirs)),
      outbox_(std::move(outbox)),
      mine_(mine),
      inbox_(theirs_.data(), shape, rank),
      mapped_(theirs_.data() != nullptr),
      rank_(rank),
      self_(self) {}

char* Channel::room() const {
  const uint32_t taken = mine_.lane(rank_).taken.value.load(std::memory_order_acquire);
  if (placed_ - taken >= Inbox::kDepth) return nullptr;
  char* slot = mapped_ ? inbox_.slot(self_, placed_) : static_cast<char*>(outbox_.data());
  return slot + Inbox::kLine;
}

Status Channel::place(const PieceHeader& header, Deadline deadline) {
  std::memcpy(room() - Inbox::kLine, &header, sizeof(header));
  if (!mapped_) {
    // put() would end up to twice the lease after the deadline, to give the memory back. This one
    // may go on: the memory at both ends is the group's, which is of no use then.
    HMC_ASSIGN(Ticket ticket,
               theirs_.startPut(outbox_, Strided{0, 0, inbox_.slotOffset(self_, placed_), 0, 1,
                                                 Inbox::kLine + header.size}));
    if (Status put = ticket.wait(deadline.left()); !put.ok()) {
      unfinished_ = true;
      return put;
    }
  }
  return tell(&Inbox::Lane::arrived, ++placed_, deadline);
}

std::optional<PieceHeader> Channel::head() const {
  const uint32_t arrived = mine_.lane(rank_).arrived.value.load(std::memory_order_acquire);
  if (arrived == taken_) return std::nullopt;
  // A copy: what has been checked must not change any more.
  PieceHeader header;
  std::memcpy(&header, mine_.slot(rank_, taken_), sizeof(header));
  return header;
}

Status Channel::take(Deadline deadline) {
  return tell(&Inbox::Lane::taken, ++taken_, deadline);
}

void Channel::blame(uint32_t rank) {
  // A note would wait for the put before it.
  if (unfinished_) return;
  // Who cannot be told notices that we are gone.
  (void)tell(&Inbox::Lane::blamed, rank + 1, std::chrono::milliseconds(100));
}

std::optional<uint32_t> Channel::blamed() const {
  const uint32_t value = mine_.lane(rank_).blamed.value.load(std::memory_order_acquire);
  if (value == 0) return std::nullopt;
  return value - 1;
}

Status Channel::tell(Inbox::Word Inbox::Lane::*word, uint32_t value, Deadline deadline) {
  if (mapped_) {
    (inbox_.lane(self_).*word).value.store(value, std::memory_order_release);
    inbox_.bell().ring();
    return Status();
  }
  for (const auto& named : kWords) {
    if (named.word != word) continue;
    std::string note(1 + sizeof(value), named.letter);
    std::memcpy(note.data() + 1, &value, sizeof(value));
    return peer_.notify(note, deadline.left());
  }
  return Status();
}

void Channel::heard(const std::string& note) const {
  uint32_t value = 0;
  if (note.size() != 1 + sizeof(value)) return;
  std::memcpy(&value, note.data() + 1, sizeof(value));
  for (const auto& named : kWords) {
    if (named.letter != note[0]) continue;
    (mine_.lane(rank_).*named.word).value.store(value, std::memory_order_release);
    mine_.bell().ring();
  }
}

}  // namespace hmc::collective
