#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fakes/fake_accelerator_memory.h"
#include "fakes/fake_queue.h"
#include "memory/backend.h"

namespace hmc {

struct FakeOptions {
  DeviceKind kind = DeviceKind::cuda;  // which accelerator it plays
  int deviceCount = 2;                 // of the machine
  // Those that this process sees, in the order of its indexes; empty: all.
  std::vector<int> visible;
  std::chrono::milliseconds delay{20};  // how long a copy idles when nobody asks for it

  // With what HMC_FAKE_VISIBLE_DEVICES and HMC_FAKE_DEVICES say, as "1,0" and "2".
  static FakeOptions fromEnvironment();
};

// An accelerator made of host memory, as strict and as asynchronous as the real ones: every queue
// has a thread of its own, copies run later, devices fail for good, and the processor that touches
// its addresses crashes.
class FakeAccelerator final : public Backend {
 public:
  explicit FakeAccelerator(FakeOptions options = {});
  ~FakeAccelerator() override;

  Result<Region> allocate(int index, size_t size) override;
  Status release(void* ptr) override;
  Status copy(const CopyBatch& batch, const DeviceQueue& queue) override;
  // Enqueues zeros, as a vendor's memset does.
  Status zero(const Region& region, const DeviceQueue& queue);
  Result<std::unique_ptr<DeviceEvent>> event(int index) override;
  Result<Region> locate(const void* ptr) override { return memory_.locate(ptr); }
  Result<Share> share(const Region& region, ShareFor purpose) override;
  Result<std::unique_ptr<Reservation>> reserve(size_t size, void* at) override;
  Result<Region> attach(const Share& share, void* at) override;
  Status detach(const Region& region) override;
  Result<std::unique_ptr<PinnedMemory>> pin(const Region& host) override;

  // A stream as a user of the vendor's runtime would create it.
  Result<DeviceQueue> createStream(int index);

  // The nth coming call of that sort (1: the next one) fails with this Status and does nothing.
  enum class Call { allocate, copy, share, attach, pin };
  void failNext(Call call, Status why, int nth = 1);
  // From now on every call that has to do with the device fails, and nothing runs on it.
  void failDevice(int index, Status why);
  // What is enqueued there does not run until the queue is let go.
  Status stall(const DeviceQueue& queue, bool stalled);
  // How much is enqueued on the device's own queues and has not run.
  uint64_t left(int index);

  // Allocations and attachments that nobody gave back, batches of copies that were enqueued, ranges
  // that are pinned, and copies of host memory that was not.
  size_t live() { return memory_.count(); }
  size_t batches() const { return batches_.load(); }
  size_t pinned();
  size_t unpinnedCopies();

 private:
  friend class FakeEvent;
  friend class FakePin;
  struct Fault {
    Status why;
    int countdown = 0;  // 0: none
  };

  Status checkBatch(const CopyBatch& batch, const DeviceQueue& queue) const;
  Status fault(Call call);
  Status healthOf(int index);
  Status drainAll();
  std::unique_ptr<FakeQueue> makeQueue(int index);
  bool isPinned(const void* ptr, size_t size);  // with mutex_ held
  void countUnpinned(const CopyBatch& batch);
  Result<FakeQueue*> queueOf(const DeviceQueue& queue);

  const FakeOptions options_;
  FakeMemory memory_;
  std::mutex mutex_;  // guards the tables below
  std::map<Call, Fault> faults_;
  std::map<int, Status> failed_;          // by index
  std::map<const char*, size_t> pinned_;  // by first byte
  size_t unpinnedCopies_ = 0;
  std::atomic<size_t> batches_{0};
  std::map<void*, std::pair<int, std::unique_ptr<FakeQueue>>> streams_;  // never destroyed
  std::vector<std::unique_ptr<FakeQueue>> queues_;  // kLanes per device; never changes
};

}  // namespace hmc
