#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "transfer/far_stage.h"
#include "transfer/shape.h"
#include "transfer/stage.h"
#include "transport/transport.h"

namespace hmc {

class Engine;

// From which memory to which memory, over which link. Resolved once, not per transfer.
struct Route {
  Link* link = nullptr;
  const Registration* registration = nullptr;
  Region local;
  const RemoteMemory* remote = nullptr;
  bool staged = false;  // the transport cannot touch local memory of that kind
  std::chrono::milliseconds lease{0};
  FarStage* far = nullptr;  // it cannot reach the target's memory: in the place of `remote`
};

// A transfer or batch on its way. Only Engine and its ProgressThread look inside.
class TransferState {
 public:
  // `keep` holds alive whatever the route points at; `observer` is told of the end.
  TransferState(Engine& engine, CompletionObserver* observer, OpKind kind, Route route,
                std::vector<Shape> shapes, std::vector<std::shared_ptr<const void>> keep)
      : engine_(engine),
        kind_(kind),
        route_(route),
        shapes_(std::move(shapes)),
        completion_(1, observer),
        next_(shapes_),
        keep_(std::move(keep)) {}

  Engine& engine() const { return engine_; }
  bool done() const { return completion_.done(); }
  // Pieces go straight from one memory to the other.
  bool direct() const { return !route_.staged && !route_.far; }
  OpKind kind() const { return kind_; }

 private:
  friend class Engine;
  friend class ProgressThread;

  // A piece that passes through a host slot, of ours, of the target's, or both. A put is posted and
  // then copied at the target, a get the other way round.
  struct StagedPiece {
    enum class Step { idle, toPost, posted, copying };
    Step step = Step::idle;
    std::unique_ptr<StageSlot> slot;  // ours, kept for the next piece
    std::optional<uint32_t> farSlot;
    Region local;
    uint64_t remote = 0;
    std::optional<Completion> completion;  // of what is under way
  };
  static constexpr size_t kStagedPieces = 4;

  Engine& engine_;
  const OpKind kind_;
  const Route route_;
  const std::vector<Shape> shapes_;
  // One count of it belongs to the pieces that were not posted yet.
  Completion completion_;

  std::mutex mutex_;        // held while pieces are posted, which does not block
  Cursor next_;             // guarded by mutex_
  bool allPosted_ = false;  // guarded by mutex_
  Status stopped_;          // guarded by mutex_: why the rest is not posted
  std::array<StagedPiece, kStagedPieces> staged_;  // guarded by mutex_
  const std::vector<std::shared_ptr<const void>> keep_;
};

}  // namespace hmc
