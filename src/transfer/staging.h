#pragma once

#include "transfer/op_poster.h"
#include "transfer/poller.h"
#include "transfer/stage.h"
#include "transfer/transfer.h"

namespace hmc {

// How often somebody who waits for a device looks whether it is done.
inline constexpr std::chrono::microseconds kDevicePoll{50};

// What posting more of a transfer led to.
enum class PostResult {
  allPosted,  // nothing is left to post; also when the transfer has failed or was cancelled
  underWay,   // the link takes no more for now, or pieces pass through slots
  onDevice,   // a device is at it, and will not wake anybody: look again soon
  outOfTime,
  noFarSlot,  // all slots at the target are in use
};

// Moves the blocks of transfers through host slots, where the transport cannot touch the memory at
// one end or at both. Small blocks share a slot: a device gathers and scatters them at once, and
// the link carries the slot in one operation. All methods are called with the transfer's mutex
// held.
class Staging {
 public:
  Staging(Transport& transport, const OpPoster& ops, Poller& poller)
      : ops_(ops), farCopies_(poller), pool_(transport) {}

  // Takes every piece as far as it goes without waiting.
  PostResult move(Transfer& transfer);
  // The transfer needs its slots here no longer.
  void release(Transfer& transfer);

 private:
  // No progress() sees the end of a copy at the target, so whoever waits is woken.
  struct FarCopies final : CompletionObserver {
    explicit FarCopies(Poller& who) : poller(who) {}
    void onComplete(uint64_t, Code) override { poller.kick(); }
    Poller& poller;
  };

  bool advance(Transfer& transfer, StagedPiece& piece);
  bool begin(Transfer& transfer, StagedPiece& piece);
  void proceed(Transfer& transfer, StagedPiece& piece, const Status& status);
  void startCopy(Transfer& transfer, StagedPiece& piece, StagedPiece::Step step);
  bool advanceCopy(Transfer& transfer, StagedPiece& piece);
  void abandon(Transfer& transfer, StagedPiece& piece, const Status& why);
  static void startPost(StagedPiece& piece);
  bool post(Transfer& transfer, StagedPiece& piece);
  void copyFar(Transfer& transfer, StagedPiece& piece);
  void end(Transfer& transfer, StagedPiece& piece, const Status& status);

  const OpPoster& ops_;
  FarCopies farCopies_;
  StagePool pool_;
};

}  // namespace hmc
