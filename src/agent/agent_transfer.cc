#include <algorithm>

#include "agent/agent.h"
#include "base/error.h"
#include "base/log.h"

// Transfers between memory of an agent and memory of another.

namespace hmc::agent {

namespace {

Result<Ticket> start(Direction direction, const LocalRegion& local, const RemoteRegion& remote,
                     const std::vector<Block>& blocks, const StreamOrder& order = {}) {
  return direction == Direction::write ? remote.startPut(local, blocks, order)
                                       : remote.startGet(local, blocks, order);
}

// CUDA's default stream is null to its users and 1 to us, for whom null is none.
void* streamOf(const LocalRegion& local, void* given) {
  const DeviceKind kind = local.device().kind;
  const bool isCudas = kind == DeviceKind::cuda || kind == DeviceKind::hip;
  return !given && isCudas ? reinterpret_cast<void*>(uintptr_t{1}) : given;  // NOLINT
}

// Neighbours are one block.
void append(std::vector<Block>& blocks, const Block& next) {
  if (!blocks.empty()) {
    Block& last = blocks.back();
    if (last.localOffset + last.size == next.localOffset &&
        last.remoteOffset + last.size == next.remoteOffset) {
      last.size += next.size;
      return;
    }
  }
  blocks.push_back(next);
}

}  // namespace

// Registered memory, or else memory that is registered for this transfer alone.
Result<std::shared_ptr<const LocalRegion>> Agent::localAround(const TransferPiece& piece) {
  {
    const std::shared_lock lock(memoryMutex_);
    const auto found = memory_.around(addressOf(piece.local), piece.size);
    if (found != memory_.end() && found->second.value.region) return found->second.value.region;
  }
  HMC_ASSIGN(auto region, node_.registerMemory("", piece.local, piece.size));
  return std::make_shared<const LocalRegion>(std::move(region));
}

Result<Agent::Lists> Agent::plan(RemoteAgent& remote, std::span<const TransferPiece> pieces,
                                 Deadline deadline) {
  Lists lists;
  std::map<std::pair<const LocalRegion*, const RemoteRegion*>, size_t> indexes;
  for (const TransferPiece& piece : pieces) {
    if (piece.size == 0) continue;
    HMC_ASSIGN(const auto local, localAround(piece));
    uint64_t localOffset = addressOf(piece.local) - addressOf(local->data());
    for (uint64_t done = 0; done < piece.size;) {
      HMC_ASSIGN(const auto place, remote.find(piece.remote + done, piece.size - done, deadline));
      const auto [at, added] = indexes.try_emplace({local.get(), place.region.get()}, lists.size());
      if (added) lists.push_back({local, place.region, {}});
      append(lists[at->second].blocks, {localOffset, place.offset, place.size});
      localOffset += place.size;
      done += place.size;
    }
  }
  return lists;
}

Status Agent::run(Direction direction, const Lists& lists, Deadline deadline) {
  if (lists.size() == 1 && lists.front().blocks.size() == 1) {
    const List& only = lists.front();
    const Block& block = only.blocks.front();
    const auto call = direction == Direction::write ? &RemoteRegion::put : &RemoteRegion::get;
    return ((*only.remote).*call)(*only.local, block.localOffset, block.remoteOffset, block.size,
                                  deadline.left());
  }
  Status first;
  const auto keep = [&first](const Status& outcome) {
    if (first.ok() && !outcome.ok()) first = outcome;
  };
  std::vector<Ticket> tickets;
  for (const List& list : lists) {
    auto ticket = start(direction, *list.local, *list.remote, list.blocks);
    if (ticket.ok()) {
      tickets.push_back(*std::move(ticket));
    } else {
      keep(ticket.status());
    }
  }
  for (Ticket& ticket : tickets) {
    Status outcome = ticket.wait(deadline.left());
    if (!outcome.ok() && !ticket.over()) (void)ticket.cancel();
    keep(outcome);
  }
  return first;
}

// What a transfer met with, so that the next one does not.
Status Agent::noteEnd(RemoteAgent& remote, const Lists& lists, const Status& outcome) {
  if (outcome.code() == Code::notFound || outcome.code() == Code::disconnected) {
    for (const List& list : lists) remote.forget(*list.remote);
  }
  return outcome;
}

Status Agent::transfer(Direction direction, const std::string& remote,
                       std::span<const TransferPiece> pieces) {
  const Deadline deadline(options_.timeout);
  RemoteAgent& peer = remoteAgent(remote);
  for (bool again = false;; again = true) {
    HMC_ASSIGN(const auto lists, plan(peer, pieces, deadline));
    Status outcome = noteEnd(peer, lists, run(direction, lists, deadline));
    // Memory that was taken back may have been registered again. Writing bytes twice does no harm.
    if (again || outcome.code() != Code::notFound) return outcome;
  }
}

Status Agent::enqueue(Direction direction, const List& list, void* stream) {
  auto ticket = start(direction, *list.local, *list.remote, list.blocks, {stream, stream});
  const bool waits = !ticket.ok() && ticket.status().code() == Code::unsupported;
  // Streams that cannot wait for the host: we wait for them.
  if (waits) ticket = start(direction, *list.local, *list.remote, list.blocks, {stream, nullptr});
  if (!ticket.ok()) return ticket.status();
  if (waits) return ticket->wait(options_.timeout);
  const std::lock_guard lock(submittedMutex_);
  submitted_.push_back(*std::move(ticket));
  return Status();
}

Status Agent::submit(Direction direction, const std::string& remote,
                     std::span<const TransferPiece> pieces, void* stream) {
  reapSubmitted();
  const Deadline deadline(options_.timeout);
  RemoteAgent& peer = remoteAgent(remote);
  HMC_ASSIGN(const auto lists, plan(peer, pieces, deadline));
  Lists atOnce;
  for (const List& list : lists) {
    void* const ordered = streamOf(*list.local, stream);
    if (list.local->device().isHost() || !ordered) {
      atOnce.push_back(list);
    } else {
      HMC_TRY(noteEnd(peer, lists, enqueue(direction, list, ordered)));
    }
  }
  return noteEnd(peer, lists, run(direction, atOnce, deadline));
}

// Nobody waits for what was submitted: a failure is at least logged.
void Agent::reapSubmitted() {
  const std::lock_guard lock(submittedMutex_);
  const auto over = std::partition(submitted_.begin(), submitted_.end(),
                                   [](const Ticket& ticket) { return !ticket.over(); });
  for (auto one = over; one != submitted_.end(); ++one) {
    const Status outcome = one->wait(Timeout::zero());
    if (!outcome.ok()) logWarn("engine {}: a transfer on a stream: {}", id(), outcome.message());
  }
  submitted_.erase(over, submitted_.end());
}

}  // namespace hmc::agent
