#pragma once

#include <deque>
#include <mutex>

#include "memory/cuda/device.h"

namespace hmc::cuda {

// A word of host memory that counts up. Streams write it when they get there and wait until it has
// a value; the host reads it without asking the driver.
struct alignas(64) Word {
  std::atomic<uint32_t> reached{0};
  uint32_t goal = 0;  // the last value that somebody was told to write

  bool isDone() const {
    return static_cast<int32_t>(reached.load(std::memory_order_acquire) - goal) >= 0;
  }
  CuPointer address() const { return cuda::address(&reached); }
};

// Words for events. One comes back into use only when its last value was written: a stream that is
// late must not count down a word that is somebody else's by then. Safe from any thread.
class Words {
 public:
  explicit Words(const Driver& driver) : driver_(driver) {}
  // A context must be current: new pages are made for all of them.
  Result<Word*> take();
  void give(Word* word);

 private:
  const Driver& driver_;
  std::mutex mutex_;
  std::deque<Word*> free_;  // guarded by mutex_; the oldest first
};

class CudaEvent final : public DeviceEvent {
 public:
  static Result<std::unique_ptr<DeviceEvent>> create(const Driver& driver, Words& words,
                                                     std::deque<CudaDevice>& devices, int index);
  ~CudaEvent() override;

  Status record(const DeviceQueue& queue) override;
  Status signal() override;
  Result<bool> passed() override;
  Status hold(const DeviceQueue& queue) override;

 private:
  CudaEvent(const Driver& driver, Words& words, std::deque<CudaDevice>& devices, int index,
            Word* word)
      : driver_(driver), words_(words), devices_(devices), index_(index), word_(word) {}
  Result<CudaDevice*> deviceOf(const DeviceQueue& queue);
  Status renewWordLocked();
  Status enqueueWrite(CudaDevice& device, const DeviceQueue& queue);

  const Driver& driver_;
  Words& words_;
  std::deque<CudaDevice>& devices_;
  const int index_;
  std::mutex mutex_;  // guards what follows
  Word* word_;
  bool recorded_ = false;
  bool holds_ = false;  // a queue waits for it
  unsigned polls_ = 0;
};

}  // namespace hmc::cuda
