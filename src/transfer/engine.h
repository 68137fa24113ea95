#pragma once

#include <memory>
#include <vector>

#include "transfer/poller.h"
#include "transfer/progress_thread.h"
#include "transfer/shape.h"
#include "transfer/stage.h"
#include "transfer/transfer.h"

namespace hmc {

// Moves bytes over one transport: cuts transfers into pieces, keeps the link's window full, stages
// device memory through the host where it must, at either end, waits, and cancels. The only caller
// of Link::post. Safe from any thread.
class Engine {
 public:
  explicit Engine(std::unique_ptr<Transport> transport)
      : progressThread_(*this),
        transport_(std::move(transport)),
        poller_(*transport_),
        stages_(*transport_) {}
  ~Engine() { progressThread_.stop(); }

  Transport& transport() const { return *transport_; }

  // Can post() read and write memory of this kind?
  bool touches(DeviceKind kind) const;

  // One contiguous transfer, finished when it returns. The ranges have been checked. After the
  // timeout the transfer is cancelled, which may take the lease longer.
  Status run(OpKind kind, const Route& route, uint64_t localOffset, uint64_t remoteOffset,
             size_t size, std::chrono::nanoseconds timeout);

  std::shared_ptr<TransferState> start(OpKind kind, const Route& route, std::vector<Shape> shapes,
                                       std::vector<std::shared_ptr<const void>> keep);
  Status wait(TransferState& transfer, Deadline deadline);
  bool test(TransferState& transfer);
  Status cancel(TransferState& transfer);

  // Moves watched transfers along while nobody waits for them.
  ProgressThread& progressThread() { return progressThread_; }

  // A link was closed by another thread: whoever waits looks again.
  void kick() {
    progressThread_.nudge();
    poller_.kick();
  }

 private:
  friend class ProgressThread;

  // Link::post() for operations on one memory of a peer's; they fail where its owner took it back.
  static size_t post(Link& link, std::span<const Op> ops);
  Status runSlowly(OpKind kind, const Route& route, const Shape& shape, Deadline deadline);
  // Posts until the time is over, and at least once; not much more than `most` bytes at a time.
  Posting pump(TransferState& transfer, Deadline until, size_t most = SIZE_MAX);
  // The same for one go; `blocked` also while another thread pumps it.
  Posting tryPump(TransferState& transfer);
  // False also while another thread pumps it.
  static bool posted(TransferState& transfer);
  Posting pumpLocked(TransferState& transfer, Deadline until, size_t most);
  Posting postPieces(TransferState& transfer, Deadline until, size_t most);
  void rest(TransferState& transfer, uint64_t seen, Deadline deadline);
  // Transfers that were started and that perhaps nobody waits for may hold all slots at the target.
  void remember(const std::shared_ptr<TransferState>& holder);
  void moveHolders();
  Posting movePiecesThroughHost(TransferState& transfer);
  bool advancePiece(TransferState& transfer, TransferState::StagedPiece& piece);
  bool beginPiece(TransferState& transfer, TransferState::StagedPiece& piece);
  Status takePiece(TransferState& transfer, TransferState::StagedPiece& piece);
  bool postPiece(TransferState& transfer, TransferState::StagedPiece& piece);
  void copyFar(TransferState& transfer, TransferState::StagedPiece& piece);
  void endPiece(TransferState& transfer, TransferState::StagedPiece& piece, Status status);
  void end(Link& link, const Completion& completion, std::chrono::milliseconds lease);

  // The end of a copy at the target, which no progress() sees.
  struct FarNews final : CompletionObserver {
    explicit FarNews(ProgressThread& who) : thread(who) {}
    void onComplete(const Completion*) override {
      if (thread.watching()) thread.nudge();
    }
    ProgressThread& thread;
  };

  ProgressThread
      progressThread_;  // outlives the transport, whose threads tell it the ends of transfers
  FarNews farNews_{progressThread_};
  const std::unique_ptr<Transport> transport_;
  Poller poller_;
  StagePool stages_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<TransferState>> holders_;  // guarded by mutex_
};

}  // namespace hmc
