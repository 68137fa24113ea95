#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "transport/transport.h"
#include "transport/ucx/address.h"
#include "transport/ucx/origin.h"

namespace hmc::ucx {

inline constexpr size_t kLargest = size_t{1} << 40;

// The operations of one link under way to its peer. A get is done when UCX says so; a put when a
// flush that covers it is, and one flush covers all puts of a post(). Safe from any thread.
class Outgoing final : private EndpointOwner {
 public:
  // `failed` is called when the endpoint fails, with the origin's mutex held. Must not outlive
  // `origin`.
  Outgoing(Origin& origin, std::chrono::milliseconds fence, std::function<void()> failed);
  // After finish().
  ~Outgoing() override;

  Status connect(const Address& peer);
  Result<std::unique_ptr<RemoteMemory>> importKey(const Key& key);
  size_t post(std::span<const Op> ops);

  // Nothing new starts, and what is under way is stopped on our side. Puts that the peer may
  // still apply end when it is fenced, or when that is sure without its word.
  void close(const Status& why);
  // The peer applies nothing more of what we asked for.
  void fenced();
  // Closes, and waits for the fence.
  void finish(const Status& why);

 private:
  friend class Origin;

  struct Batch;
  struct Slot {
    Completion* completion;
    Outgoing* owner;
    Batch* batch;  // none for a get
    Slot* next;
  };
  // Operations in the order in which they were posted.
  struct List {
    Slot* first = nullptr;
    Slot* last = nullptr;
    void append(Slot* slot);
    void append(List& others);
  };
  // Puts that one flush covers.
  struct Batch {
    Outgoing* owner = nullptr;
    List puts;
    uint32_t waiting = 0;  // requests of UCX, the flush included also before it begins
    bool flushing = false;
    bool failed = false;
  };
  // More flushes at once bring nothing: what is posted meanwhile shares the next one.
  static constexpr size_t kFlushes = 8;
  static constexpr size_t kMostOps = 1024;

  static void putOver(void* request, ucs_status_t status, void* slot);
  static void getOver(void* request, ucs_status_t status, void* slot);
  static void flushOver(void* request, ucs_status_t status, void* batch);

  // With the origin's mutex held.
  void endpointFailed(ucs_status_t status) override;
  bool over() const;
  bool tend();
  Origin::Clock::time_point fenceAt() const { return fenceAt_; }

  Status check(const Op& op) const;
  Status sentence(const char* what, ucs_status_t status) const;
  bool start(const Op& op);
  void startPut(const Op& op, Slot* slot);
  void startGet(const Op& op, Slot* slot);
  void flush();
  void partOver(Batch& batch, ucs_status_t status);
  void batchOver(Batch& batch);
  void begin(const Status& why);
  void end(const List& list, const Status& status);
  void endOne(Slot* slot, const Status& status);
  const Api& api() const { return origin_.worker_->api(); }

  Origin& origin_;
  const std::chrono::milliseconds fence_;
  const std::function<void()> failed_;
  // All of it guarded by the origin's mutex.
  ucp_ep_h endpoint_ = nullptr;
  PathWords words_;
  std::string peer_;  // for sentences
  Status why_;        // not ok: closed
  bool fenced_ = false;
  Origin::Clock::time_point fenceAt_ = Origin::Clock::time_point::max();
  std::unique_ptr<Slot[]> slots_;
  Slot* free_ = nullptr;
  size_t requests_ = 0;  // of UCX, under way
  size_t flushes_ = 0;   // of those
  std::array<Batch, kFlushes + 1> batches_;
  Batch* open_ = nullptr;  // takes the puts that no flush covers yet
  List held_;              // puts that UCX has given up and the peer may still apply
};

}  // namespace hmc::ucx
