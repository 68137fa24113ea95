#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "memory/host_copy.h"
#include "transport/transport.h"
#include "transport/ucx/hardware_ops.h"
#include "transport/ucx/path.h"
#include "transport/ucx/progress.h"

namespace hmc::ucx {

// Sends the operations of one link to its peer: by hardware where it can, else by message, which
// the peer answers. Safe from any thread.
//
// When the peer's hardware refuses one operation, all that are under way are lost with the path.
// They are sent again over a new path, as messages: so the peer itself says which one it refuses,
// and why. Puts and gets may be done twice until their completion.
class Outgoing final : private Path::User, private RemoteKeys, private HardwareOps::Owner {
 public:
  // `failed` is called when the path to the peer fails, with the progress mutex held. Must not
  // outlive `progress`.
  Outgoing(Progress& progress, TransportCounters& counters, std::chrono::milliseconds fence,
           std::function<void()> failed);
  // After finish().
  ~Outgoing();

  Status connect(const Address& peer);
  // The first call brings up the path. A side that only serves must not: it would never move it
  // along, and UCX 1.13 aborts the peer's process when a half-open connection goes away.
  Result<std::unique_ptr<RemoteMemory>> importKey(const Key& key, Deadline deadline);
  size_t post(std::span<const Op> ops);

  // Nothing new starts, and what is under way is stopped on our side when it returns. Puts that
  // the peer may still apply end when it is fenced, or when the time for that is over.
  void close(const Status& why);
  // The peer applies nothing more of what we asked for.
  void fenced();
  // Closes, and waits for the fence.
  void finish(const Status& why);

 private:
  friend class Progress;
  using Clock = Progress::Clock;

  enum class PathState {
    working,    // or the first one, which comes up
    broken,     // what is under way over it is lost
    recovering  // the next one comes up
  };

  // Called by UCX from inside of progress().
  static void onSent(void* request, ucs_status_t status, void* slot);
  void replied(const Reply& reply, const void* data, size_t size) override;
  void lost(ucs_status_t status) override;

  void forget(const UcxRemote& remote) override;

  // All of these with the progress mutex held.
  void poll();
  bool arm() { return !path_ || path_->arm(); }
  Clock::time_point timer() const { return timer_; }
  bool reconcile();
  void beginClose(const Status& why);
  void fail(const Status& why);
  void dropPath();
  void endStopped();

  Status beginPath();
  void describePath();
  Status awaitPath(Deadline deadline);
  Status explain(const char* what, ucs_status_t status) const;
  bool isRefusal(ucs_status_t status) const;
  void recover();
  void resendAll();
  bool start(const Op& op);
  void sendAsMessage(RequestSlot& slot) override;
  void partDone(RequestSlot& slot);
  const Api& api() const { return progress_.context_.api(); }

  Progress& progress_;
  TransportCounters& counters_;
  const std::chrono::milliseconds fence_;
  const std::function<void()> failed_;
  // All of it guarded by the progress mutex.
  std::unique_ptr<Path> path_;  // none before the first key, and once closed
  PathTaken taken_;
  std::optional<Address> peer_;
  std::string peerName_ = "the peer";
  Status why_;  // not ok: closed
  bool fenced_ = false;
  PathState state_ = PathState::working;
  bool onHardware_ = false;  // the path's lane is one of hardware
  bool inPlace_ = false;     // the path sends messages without a copy
  // When the fence is over, or recovery has taken too long.
  Clock::time_point timer_ = Clock::time_point::max();
  RequestSlots slots_;
  HardwareOps hardware_;
  RowCopy row_;  // of gets
};

}  // namespace hmc::ucx
