#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "transfer/completion_list.h"
#include "transport/transport.h"

namespace hmc {

class Engine;

// How far a transfer came: everything is posted or has failed; the link takes no more for now; the
// time is over; all slots at the target are in use.
enum class Posting { over, blocked, paused, starved };

// Moves along the transfers of one engine that an event loop watches, in a thread that exists from
// the first of them on and sleeps while there is none. Who ends a transfer tells its CompletionList
// there and then; the thread is for what nobody else does: it posts what is left to post and polls
// the transport. Safe from any thread.
//
// A finished transfer costs one look into a hash table, however many are watched. A round of the
// poller costs one attempt to post for every link that has something left to post, and one look at
// every transfer that passes through slots of the host.
class ProgressThread final : public CompletionObserver {
 public:
  explicit ProgressThread(Engine& engine) : engine_(engine) {}
  // Ends the thread, for good. Nothing is watched any more.
  void stop();

  // From now on the transfer moves, and the list hears of its end. The list holds the transfer.
  Status watch(TransferState& transfer, CompletionList& list, CompletionList::Entry entry);
  // The list hears nothing more, and the thread uses none of its transfers, once it returns.
  void forget(const CompletionList& list);
  // What could not be posted may be possible now. Not where a transport's locks are held.
  void nudge();
  // Spares others a nudge.
  bool watching() const { return watching_; }

  // The end of a transfer of the engine, watched or not.
  void onComplete(const Completion* completion) override;

 private:
  struct Watch {
    TransferState* transfer;
    CompletionList* list;
    CompletionList::Entry entry;
  };
  using Lock = std::unique_lock<std::mutex>;
  using Queue = std::deque<const Completion*>;

  Status startThread();
  // With mutex_ held. True when the thread has to look at it.
  bool enqueue(const TransferState& transfer, const Completion* key);
  void run(const std::stop_token& stop);
  // With mutex_ held, which they let go of while they move something. True when there is more to do
  // at once.
  bool moveAll(Lock& lock);
  bool moveQueue(Lock& lock, Queue& queue);
  void moveStaged(Lock& lock);
  Posting post(Lock& lock, const Completion* completion);
  // In between the thread uses a transfer without the lock, or any of them when that is null. Its
  // end is told at the end.
  void beginMove(Lock& lock, const Completion* what);
  void endMove(Lock& lock);
  TransferState* find(const Completion* completion);
  void tellIfDone(const Completion* completion);
  void setWatching() { watching_ = !watched_.empty(); }

  Engine& engine_;
  std::atomic<bool> news_{false};  // something may be possible that was not before
  std::atomic<bool> watching_{false};
  std::mutex mutex_;                    // guards what follows
  std::condition_variable_any wanted_;  // watched_ is not empty
  std::condition_variable moved_;       // moves_ has grown
  std::unordered_multimap<const Completion*, Watch> watched_;
  // Not posted completely, by link; and those that pass through slots. What is not in watched_ any
  // more is dropped when its turn comes.
  std::map<const Link*, Queue> unposted_;
  std::vector<const Completion*> staged_;
  bool moving_ = false;                           // the thread uses transfers without the lock
  const Completion* movingWhat_ = nullptr;        // which one; null: any of them
  std::vector<const Completion*> overMeanwhile_;  // to be told when it is through
  uint64_t moves_ = 0;
  std::jthread thread_;
};

}  // namespace hmc
