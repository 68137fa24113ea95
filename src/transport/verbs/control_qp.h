#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "transport/verbs/queue_pair.h"

namespace hmc::verbs {

// What the two ends of a link tell each other, a few times in its life.
struct ControlMessage {
  enum class Kind : uint8_t {
    hello = 1,  // sent by the initiator, answered with the same
    reset,      // my channel broke: reset your end of it, I start again at `psn`
    resetDone,
    closed,  // nothing of what you asked is applied any more; this is my last message
  };
  Kind kind = Kind::hello;
  uint8_t channel = 0;
  uint32_t psn = 0;
};

// The queue pair that carries control messages. Sending is safe from any thread; completions are
// handled on the service thread.
class ControlQp {
 public:
  static Result<std::unique_ptr<ControlQp>> create(CompletionQueues& queues);

  QpAddress address() const { return {0, pair_.number(), psn_}; }
  Status connect(const QpAddress& to, const PortAddress& port);
  Status send(const ControlMessage& message);

  struct Event {
    ControlQp* qp;
    std::optional<ControlMessage> received;
    Status failure;  // nothing reaches the peer any more
  };
  // For the ibv_wc of any ControlQp.
  static Event handle(const ibv_wc& wc);

  // Everything that was sent has arrived, or never will.
  bool flushed() const { return sending_.load() == 0; }
  // Nothing is posted, so no completion can come.
  bool idle() const { return sending_.load() == 0 && receiving_.load() == 0; }
  // What is posted ends.
  void stop() { pair_.stop(); }
  const Nic& nic() const { return pair_.nic(); }

 private:
  static constexpr size_t kDepth = 64;
  struct MessageSlot {
    ControlQp* qp;
    bool sends;
    uint64_t* bytes;  // in memory_
  };

  explicit ControlQp(QueuePair pair);
  ibv_sge pieceOf(const MessageSlot& slot) const;
  Status receiveInto(MessageSlot& slot);
  Event completed(MessageSlot& slot, const ibv_wc& wc);

  QueuePair pair_;
  const uint32_t psn_;
  std::vector<MessageSlot> slots_;  // kDepth to receive into, kDepth to send from
  const Page<uint64_t> memory_ = makePage<uint64_t>();
  Handle<ibv_mr> key_{nullptr, nullptr};
  std::mutex mutex_;
  std::vector<MessageSlot*> free_;  // guarded by mutex_: to send from
  std::atomic<size_t> sending_{0};
  std::atomic<size_t> receiving_{0};
};

}  // namespace hmc::verbs
