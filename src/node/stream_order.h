#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>

#include "memory/backend.h"
#include "transfer/engine.h"

namespace hmc {

// Streams that wait for transfers. A transfer is moved along while its stream waits, and the stream
// goes on when it has ended, well or not. Safe from any thread.
class StreamHolds {
 public:
  ~StreamHolds() { clear(); }

  // The stream that the event holds goes on when the transfer has ended.
  Status releaseAfter(std::shared_ptr<TransferState> transfer, std::unique_ptr<DeviceEvent> event);
  // Lets all streams go.
  void clear();

 private:
  struct Hold final : CompletionObserver {
    Hold(std::shared_ptr<TransferState> what, std::unique_ptr<DeviceEvent> until)
        : transfer(std::move(what)), event(std::move(until)) {}
    void onComplete(uint64_t, Code) override {
      (void)event->signal();
      ended.store(true, std::memory_order_release);
    }
    const std::shared_ptr<TransferState> transfer;
    const std::unique_ptr<DeviceEvent> event;
    std::atomic<bool> ended{false};
  };
  using Holds = std::list<Hold>;

  Holds takeEnded();

  std::mutex mutex_;
  Holds holds_;  // guarded by mutex_
};

// Passes when what is enqueued on that stream now has run.
Result<std::shared_ptr<DeviceEvent>> recordOn(const DeviceQueue& stream);
// Holds what is enqueued on that stream from now on until it is signalled or gone.
Result<std::unique_ptr<DeviceEvent>> hold(const DeviceQueue& stream);

}  // namespace hmc
