#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "memory/pending_copy.h"
#include "transfer/far_stage.h"
#include "transfer/pieces.h"
#include "transfer/slot_blocks.h"
#include "transfer/stage.h"
#include "transport/transport.h"

namespace hmc {

// From which memory to which memory, over which link. Resolved once, not per transfer.
struct Route {
  Link* link = nullptr;
  const Registration* registration = nullptr;
  Region local;
  const RemoteMemory* remote = nullptr;
  bool staged = false;  // the transport cannot touch local memory of that kind
  std::chrono::milliseconds lease{0};
  FarStage* far = nullptr;  // it cannot reach the target's memory: in the place of `remote`
  const char* peer = "";    // for traces
};

// Blocks that pass through a host slot together, of ours, of the target's, or both.
struct StagedPiece {
  enum class Step {
    idle,
    filling,  // a device copies them into our slot
    posting,  // the link has not taken all of them
    posted,
    copyingFar,  // the target copies them out of its slot, or into it
    emptying,    // a device copies them out of our slot
  };
  Step step = Step::idle;
  SlotBlocks blocks;
  std::unique_ptr<StageSlot> slot;  // ours, kept for the next piece
  bool throughSlot = false;         // this piece uses it
  std::optional<uint32_t> farSlot;
  // What the link moves between the slots and whatever has none.
  Block whole;  // all that is in a slot
  std::optional<Pieces> wire;
  std::optional<Cursor> next;            // of wire: what was not posted yet
  std::optional<Completion> completion;  // of what is posted or copied at the target
  std::unique_ptr<PendingCopy> copy;     // between our slot and local memory
  Deadline copyUntil = Deadline::never();
};

// A transfer or batch on its way: what is left to post, and what is under way. Poster moves it.
// Its owner keeps it until it is done.
struct Transfer {
  // Enough to keep a link busy while devices copy at both ends.
  static constexpr size_t kStagedPieces = 16;

  // `number` is never used again for another transfer of the same engine. `holds` keeps alive
  // whatever the route points at. The local memory is ready when `event` has passed, if there is
  // one.
  Transfer(uint64_t number, CompletionObserver* observer, OpKind what, const Route& over,
           Pieces moved, std::vector<std::shared_ptr<const void>> holds,
           std::shared_ptr<DeviceEvent> event = nullptr)
      : id(number),
        kind(what),
        route(over),
        keep(std::move(holds)),
        after(std::move(event)),
        completion(1, observer, id),
        pieces(std::move(moved)),
        next(pieces),
        staged(direct() ? 0 : kStagedPieces) {}

  bool done() const { return completion.done(); }
  // Pieces go straight from one memory to the other.
  bool direct() const { return !route.staged && !route.far; }

  const uint64_t id;
  const OpKind kind;
  const Route route;
  const std::vector<std::shared_ptr<const void>> keep;
  const std::shared_ptr<DeviceEvent> after;  // null when the local memory is ready
  // One count of it belongs to the pieces that were not posted yet.
  Completion completion;

  std::mutex mutex;                 // held while pieces are posted, which does not block
  Pieces pieces;                    // guarded by mutex
  Cursor next;                      // guarded by mutex
  bool ready = !after;              // guarded by mutex: nothing has to wait for `after` here
  bool allPosted = false;           // guarded by mutex
  Status stopped;                   // guarded by mutex: why the rest is not posted
  std::vector<StagedPiece> staged;  // guarded by mutex; none when pieces go straight
};

}  // namespace hmc
