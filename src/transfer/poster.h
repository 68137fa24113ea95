#pragma once

#include <mutex>
#include <unordered_set>

#include "transfer/op_poster.h"
#include "transfer/poller.h"
#include "transfer/staging.h"
#include "transfer/transfer.h"

namespace hmc {

// Posts the pieces of transfers over one transport, none of which blocks. Safe from any thread; the
// mutex of a transfer decides who posts it.
class Poster {
 public:
  // Pieces are no larger than this, so that deadlines and cancels are looked at now and then.
  static constexpr size_t kLargestPiece = size_t{64} << 20;

  Poster(Transport& transport, const OpPoster& ops, Poller& poller)
      : ops_(ops), staging_(transport, ops, poller) {}

  // Posts until the time is over, and at least once; not much more than `most` bytes at a time.
  PostResult post(Transfer& transfer, Deadline until, size_t most = SIZE_MAX);
  // The same for one go; `underWay` also while another thread posts it.
  PostResult tryPost(Transfer& transfer);
  // False also while another thread posts it.
  static bool allPosted(Transfer& transfer);
  // What was not posted yet fails with `why`.
  static void stop(Transfer& transfer, const Status& why);
  // The caller's list may go from now on: what was not posted yet is copied.
  static void keepRest(Transfer& transfer);

  // The transfer may hold slots at the target while nobody moves it, from now on until it is done.
  void addSlotHolder(Transfer& transfer);
  // Moves such transfers, without ending any of them, so that they give their slots back. True when
  // one of them is on a device.
  bool moveSlotHolders();

 private:
  PostResult postLocked(Transfer& transfer, Deadline until, size_t most);
  bool waitsForEvent(Transfer& transfer);
  PostResult postPieces(Transfer& transfer, Deadline until, size_t most);
  bool postList(Transfer& transfer);
  bool postBatch(Transfer& transfer, size_t most);
  // Of a list whose blocks are not checked part by part.
  static bool checkRest(Transfer& transfer);
  void end(Transfer& transfer);

  const OpPoster& ops_;
  Staging staging_;
  // Taken after a transfer's mutex; whoever has it only tries to take those.
  std::mutex mutex_;
  std::unordered_set<Transfer*> slotHolders_;  // guarded by mutex_
};

}  // namespace hmc
