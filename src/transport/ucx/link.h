#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "transport/ucx/progress.h"
#include "transport/ucx/requests.h"
#include "transport/ucx/service.h"

namespace hmc::ucx {

// The data path to one peer. The service serves the peer's operations; ours go by hardware where
// they can, else by message, which the peer answers.
//
// When the peer's hardware refuses one operation, all that are under way are lost with the path.
// They are sent again over a new path, as messages: so the peer itself says which one it refuses,
// and why. Puts and gets may be done twice until their completion.
class UcxLink final : public Link, private Path::User, private Service::Member {
 public:
  // Must not outlive `progress` and `service`.
  static Result<std::unique_ptr<Link>> create(Progress& progress, Service& service,
                                              TransportCounters& counters,
                                              const LinkOptions& options);
  ~UcxLink() override;

  Status connect(std::string_view peerAddress) override;
  const std::string& address() const override { return encoded_; }
  // The first call brings up the path. A side that only serves must not: it would never move it
  // along, and UCX 1.13 aborts the peer's process when a half-open connection goes away.
  Result<std::unique_ptr<RemoteMemory>> importKey(std::string_view key, Deadline deadline,
                                                  void* place) override;
  size_t post(std::span<const Op> ops) override;
  // Puts that the peer may still apply end when it is fenced, or when the time for that is over.
  void close(const Status& why) override;
  // For a UcxRemote that goes.
  void forget(const UcxRemote& remote);

 private:
  friend class Progress;
  using Clock = Progress::Clock;

  enum class PathState {
    working,    // or the first one, which comes up
    broken,     // what is under way over it is lost
    recovering  // the next one comes up
  };

  UcxLink(Progress& progress, Service& service, TransportCounters& counters,
          const LinkOptions& options);

  // Called by UCX from inside of progress().
  static void onSent(void* request, ucs_status_t status, void* slot);
  void replied(const Reply& reply, const void* data, size_t size) override;
  void endpointFailed(ucs_status_t status) override;
  // On the service's thread.
  void peerLeft(const Status& why, bool fenced) override;

  void stopSending(const Status& why, bool fenced);
  Status awaitPath(Deadline deadline);

  // All of these with the progress mutex held.
  void poll();
  bool arm() { return !path_ || path_->arm(); }
  bool reconcile();
  void beginClose(const Status& why);
  void fail(const Status& why);
  void dropPath();
  Status beginPath();
  Status explain(const char* what, ucs_status_t status) const;
  bool isRefusal(ucs_status_t status) const;
  void recover();
  void resendAll();
  bool start(const Op& op);
  void sendAsMessage(RequestSlot& slot);
  void partDone(RequestSlot& slot);
  const Api& api() const { return progress_.context_.api(); }

  Progress& progress_;
  Service& service_;
  TransportCounters& counters_;
  const std::chrono::milliseconds fence_;
  const std::function<void()> onEnd_;
  const uint64_t number_;  // the service's
  std::string encoded_;
  std::atomic<bool> connected_{false};
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
