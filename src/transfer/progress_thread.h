#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "transfer/poster.h"

namespace hmc {

// Moves along the transfers of one engine that somebody watches, in a thread that exists from the
// first of them on and sleeps while there is none. Whoever ends a transfer tells its observer there
// and then; the thread is for what nobody else does: it posts what is left to post and polls the
// transport. Safe from any thread.
//
// A finished transfer costs one look into a hash table, however many are watched. A round of the
// poller costs one attempt to post for every link that has something left to post, and one look at
// every transfer that passes through slots of the host.
class ProgressThread final : public CompletionObserver {
 public:
  ProgressThread(Poster& poster, Poller& poller) : poster_(poster), poller_(poller) {}
  // Ends the thread, for good. Nothing is watched any more.
  void stop();

  // From now on the transfer moves, and the observer hears of its end, once. Both last until then,
  // or until forget().
  Status watch(Transfer& transfer, CompletionObserver& observer);
  // The observer hears nothing more about that transfer, and the thread does not use it, once this
  // returns.
  void forget(uint64_t id, const CompletionObserver& observer);

  // The end of a transfer of the engine, watched or not.
  void onComplete(uint64_t id, Code code) override;

 private:
  struct Watch {
    Transfer* transfer;
    CompletionObserver* observer;
  };
  using Lock = std::unique_lock<std::mutex>;
  using Queue = std::deque<uint64_t>;

  // With mutex_ held. True when the thread has to look at it.
  bool enqueue(const Transfer& transfer);
  void run(const std::stop_token& stop);
  // With mutex_ held, which they let go of while they move something. They answer until when the
  // thread may sleep.
  Deadline moveAll(Lock& lock);
  Deadline moveQueue(Lock& lock, Queue& queue);
  Deadline moveStaged(Lock& lock);
  PostResult post(Lock& lock, uint64_t id);
  // With mutex_ held.
  void tell(uint64_t id, Code code);

  Poster& poster_;
  Poller& poller_;
  std::mutex mutex_;                                  // guards what follows
  std::condition_variable_any wanted_;                // watched_ is not empty
  std::condition_variable moved_;                     // posts_ has grown
  std::unordered_multimap<uint64_t, Watch> watched_;  // by the transfer's id
  // Not posted completely, by link; and those that pass through slots. What is not in watched_ any
  // more is dropped when its turn comes.
  std::map<const Link*, Queue> unposted_;
  std::vector<uint64_t> staged_;
  // The transfer that the thread posts without the lock, if any. Its observers are told of its end
  // when the thread is through, since they may destroy it.
  std::optional<uint64_t> posting_;
  std::optional<Code> endedMeanwhile_;
  uint64_t posts_ = 0;
  std::jthread thread_;
};

}  // namespace hmc
