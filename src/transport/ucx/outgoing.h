#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transport/transport.h"
#include "transport/ucx/address.h"
#include "transport/ucx/origin.h"
#include "transport/ucx/path.h"
#include "transport/ucx/registration.h"
#include "transport/ucx/wire.h"

namespace hmc::ucx {

// The operations of one link under way to its peer, which are messages and done when the peer says
// so. Safe from any thread.
class Outgoing final : private Path::User {
 public:
  // `failed` is called when the path to the peer fails, with the origin's mutex held. Must not
  // outlive `origin`.
  Outgoing(Origin& origin, std::chrono::milliseconds fence, std::function<void()> failed);
  // After finish().
  ~Outgoing();

  Status connect(const Address& peer);
  // The first call brings up the path. A side that only serves must not: it would never move it
  // along, and UCX 1.13 ends the peer's process when a connection goes that is only half there.
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
  friend class Origin;

  // One operation under way.
  struct Slot {
    Completion* completion;  // none when the slot is free
    Outgoing* owner;
    Slot* next;  // of the free ones
    OpKind kind;
    uint8_t waiting;  // for UCX to have sent it, and for the reply
    void* local;
    size_t size;
    Bytes carried;
    Status refusal;  // the peer's
    char header[Request::kSize];
  };
  static constexpr size_t kMostOps = 1024;
  static constexpr size_t kMostBytes = size_t{16} << 20;

  // Called by UCX from inside of progress().
  static void sent(void* request, ucs_status_t status, void* slot);
  void replied(const Reply& reply, const void* data, size_t size) override;
  void lost(ucs_status_t status) override;

  // All of these with the origin's mutex held.
  void look() {
    if (path_) path_->progress();
  }
  bool arm() { return !path_ || path_->arm(); }
  Origin::Clock::time_point timer() const { return timer_; }
  bool tend();
  bool over() const { return !why_.ok() && !path_ && used_ == 0; }
  void begin(const Status& why);
  void dropPath();
  void endAll();

  Status beginPath();
  Status awaitPath(Deadline deadline);
  Status sentence(const char* what, ucs_status_t status) const;
  bool start(const Op& op);
  void send(const Op& op, Slot* slot);
  void partOver(Slot* slot);
  void endOne(Slot* slot, const Status& status);
  const Api& api() const { return origin_.context_.api(); }

  Origin& origin_;
  const std::chrono::milliseconds fence_;
  const std::function<void()> failed_;
  // All of it guarded by the origin's mutex.
  std::unique_ptr<Path> path_;  // none before the first key, and once closed
  PathWords words_;
  std::optional<Address> peer_;
  std::string who_ = "the peer";  // for sentences
  Status why_;                    // not ok: closed
  bool fenced_ = false;
  // When the fence is over.
  Origin::Clock::time_point timer_ = Origin::Clock::time_point::max();
  std::vector<Slot> slots_;
  Slot* free_ = nullptr;
  size_t used_ = 0;      // slots
  size_t underWay_ = 0;  // bytes
};

}  // namespace hmc::ucx
