#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "memory/host_copy.h"
#include "transport/transport.h"
#include "transport/ucx/address.h"
#include "transport/ucx/origin.h"
#include "transport/ucx/path.h"
#include "transport/ucx/remote.h"
#include "transport/ucx/wire.h"

namespace hmc::ucx {

// The operations of one link under way to its peer. By messages they are done when the peer says
// so. By hardware a get is done when UCX says so, and a put when a flush that covers it is. Safe
// from any thread.
//
// When the peer's hardware refuses one operation, all that are under way are lost with the path. A
// new path is made, and all of them are done again, as messages: so the peer itself says which one
// it refuses, and why. Puts and gets may be done twice as long as nobody was told that they are
// done.
class Outgoing final : private Path::User, private RemoteKeys {
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

  struct Batch;
  // One operation under way.
  struct Slot {
    Completion* completion;  // none when the slot is free
    Outgoing* owner;
    Slot* next;  // in the batch, or of the free ones
    OpKind kind;
    uint8_t waiting;  // by messages: for UCX to have sent it, and for the reply
    bool again;       // one of repeats_
    Batch* batch;     // of a put by hardware
    RemoteKey* key;   // by hardware
    void* local;
    size_t size;
    uint64_t area;
    uint64_t offset;
    Bytes carried;
    Status refusal;  // the peer's
    char header[Request::kSize];
  };
  // Puts by hardware that one flush covers.
  struct Batch {
    Outgoing* owner = nullptr;
    Slot* first = nullptr;
    Slot* last = nullptr;
    size_t bytes = 0;
    uint32_t waiting = 0;  // requests of UCX, the flush included also before it begins
  };
  enum class Stage {
    whole,   // the path works, or is the first one and comes up
    broken,  // nothing comes of what is under way over it
    mending  // the next one comes up
  };
  // More flushes at once bring nothing: what is posted meanwhile shares the next one.
  static constexpr size_t kFlushes = 8;
  static constexpr size_t kMostOps = 1024;
  static constexpr size_t kMostBytes = size_t{16} << 20;

  // Called by UCX from inside of progress().
  static void sent(void* request, ucs_status_t status, void* slot);
  static void putOver(void* request, ucs_status_t status, void* slot);
  static void getOver(void* request, ucs_status_t status, void* slot);
  static void flushOver(void* request, ucs_status_t status, void* batch);
  void replied(const Reply& reply, const void* data, size_t size) override;
  void lost(ucs_status_t status) override;

  // All of these with the origin's mutex held.
  void look();
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
  bool isRefusal(ucs_status_t status) const;
  void mend();
  void repeatAll();
  bool start(const Op& op);
  void send(Slot* slot);
  void partOver(Slot* slot);
  RemoteKey* keyOf(const UcxRemote& remote);
  void leaveToMessages(uint64_t area);
  void letGo(RemoteKey*& key);
  void forget(const UcxRemote& remote) override;
  void put(Slot* slot, uint64_t address);
  void get(Slot* slot, uint64_t address);
  void flush();
  void partOver(Batch& batch);
  Slot* release(Slot* slot);
  void endOne(Slot* slot, const Status& status);
  const Api& api() const { return origin_.context_.api(); }

  Origin& origin_;
  const std::chrono::milliseconds fence_;
  const std::function<void()> failed_;
  // All of it guarded by the origin's mutex.
  std::unique_ptr<Path> path_;  // none before the first key, and once closed
  PathTaken taken_;
  std::optional<Address> peer_;
  std::string who_ = "the peer";  // for sentences
  Status why_;                    // not ok: closed
  bool fenced_ = false;
  Stage stage_ = Stage::whole;
  bool hardware_ = false;  // the path's lane is one of hardware
  bool inPlace_ = false;   // the path's messages are sent from where they lie
  // When the fence is over, or mending has taken too long.
  Origin::Clock::time_point timer_ = Origin::Clock::time_point::max();
  std::vector<Slot> slots_;
  Slot* free_ = nullptr;
  size_t used_ = 0;      // slots
  size_t underWay_ = 0;  // bytes
  size_t repeats_ = 0;   // operations that are done again; no hardware while there are any
  size_t flushes_ = 0;   // under way
  RowCopy row_;          // of gets
  std::array<Batch, kFlushes + 1> batches_;
  Batch* open_ = nullptr;                  // takes the puts that no flush covers yet
  std::vector<const UcxRemote*> remotes_;  // that hardware may reach
};

}  // namespace hmc::ucx
