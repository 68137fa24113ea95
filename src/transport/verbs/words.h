#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "transport/verbs/completion_queues.h"
#include "transport/verbs/queue_pair.h"

namespace hmc::verbs {

// What the two ends of a link tell each other, few times in its life.
struct Word {
  enum class Kind : uint8_t {
    hello = 1,  // I am there; answered with the same by the side that did not dial
    renew,      // my channel broke: make your end new, I start at `packet`
    renewed,    // done
    stopped,    // nothing of what you asked is applied any more, and you will hear nothing more
  };
  Kind kind = Kind::hello;
  uint8_t channel = 0;
  uint32_t packet = 0;
};

// The queue pair that carries words. Sending is safe from any thread; what ended is handled on the
// service thread.
class Words {
 public:
  static Result<std::unique_ptr<Words>> create(const Nic& nic, size_t nicIndex,
                                               CompletionQueues& queues);
  ~Words();

  Address::Pair pair() const;
  Status connect(const Address::Pair& to, const Address::Place& place);
  Status send(const Word& word);

  struct Ended {
    Words* words;
    std::optional<Word> heard;
    Status failure;  // nothing reaches the peer any more
  };
  // For the ibv_wc of any Words.
  static Ended handle(const ibv_wc& wc);

  // Nothing that was sent is still on its way.
  bool silent() const { return sending_.load() == 0; }
  // Nothing is posted, so that no completion can come.
  bool idle() const { return sending_.load() == 0 && receiving_.load() == 0; }
  // What is posted ends.
  void stop() { pair_.stop(); }
  const Nic& nic() const { return pair_.nic(); }

 private:
  static constexpr size_t kDepth = 64;
  struct Slot {
    Words* words;
    bool sends;
    uint64_t* bytes;  // in memory_
  };

  Words(size_t nicIndex, CompletionQueues& queues, ibv_cq* queue, QueuePair pair);
  Status receiveInto(Slot& slot);
  Ended ended(Slot& slot, const ibv_wc& wc);

  const size_t nicIndex_;
  CompletionQueues& queues_;
  ibv_cq* const queue_;
  QueuePair pair_;
  const uint32_t firstPacket_;
  std::vector<Slot> slots_;  // kDepth to receive into, kDepth to send from
  const Page<uint64_t> memory_ = makePage<uint64_t>();
  Handle<ibv_mr> key_{nullptr, nullptr};
  std::mutex mutex_;
  std::vector<Slot*> free_;  // guarded by mutex_: to send from
  std::atomic<size_t> sending_{0};
  std::atomic<size_t> receiving_{0};
};

}  // namespace hmc::verbs
