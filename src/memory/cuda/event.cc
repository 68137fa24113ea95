#include "memory/cuda/event.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace hmc::cuda {

namespace {
constexpr size_t kWordsPerPage = 256;
constexpr size_t kLooks = 16;  // words of late streams that take() passes over
// A broken device writes no words: it is asked now and then whether it still works. That takes 1.4
// us and more, so it is not done while short copies run.
constexpr unsigned kPollsPerHealthCheck = 1024;
}  // namespace

Result<Word*> Words::take() {
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < std::min(kLooks, free_.size()) && !free_.front()->isDone(); ++i) {
    free_.push_back(free_.front());
    free_.pop_front();
  }
  if (free_.empty() || !free_.front()->isDone()) {
    void* page = nullptr;
    HMC_CUDA(driver_, cuMemHostAlloc, &page, kWordsPerPage * sizeof(Word),
             kHostPortable | kHostMapped);
    auto* words = static_cast<Word*>(page);  // never freed: a late stream may still write there
    for (size_t i = 0; i < kWordsPerPage; ++i) free_.push_front(new (words + i) Word);
  }
  Word* word = free_.front();
  free_.pop_front();
  ++word->goal;
  return word;
}

void Words::give(Word* word) {
  std::lock_guard lock(mutex_);
  free_.push_back(word);
}

Result<std::unique_ptr<DeviceEvent>> CudaEvent::create(const Driver& driver, Words& words,
                                                       std::deque<CudaDevice>& devices, int index) {
  HMC_ASSIGN(CuContext context, devices[static_cast<size_t>(index)].context());
  Current current(driver, context);
  HMC_TRY(current.status());
  HMC_ASSIGN(Word * word, words.take());
  return std::unique_ptr<DeviceEvent>(new CudaEvent(driver, words, devices, index, word));
}

CudaEvent::~CudaEvent() {
  if (!recorded_) word_->reached.store(word_->goal, std::memory_order_release);
  words_.give(word_);
}

Result<CudaDevice*> CudaEvent::deviceOf(const DeviceQueue& queue) {
  const auto count = static_cast<int>(devices_.size());
  if (queue.device.kind != DeviceKind::cuda || queue.device.index < 0 ||
      queue.device.index >= count || queue.lane >= DeviceQueue::kLanes) {
    return error(Code::invalidArgument, "a queue of {} is none of the {} devices of CUDA",
                 queue.device.toString(), count);
  }
  return &devices_[static_cast<size_t>(queue.device.index)];
}

Status CudaEvent::record(const DeviceQueue& queue) {
  HMC_ASSIGN(CudaDevice * device, deviceOf(queue));
  if (device->index() != index_) {
    return error(Code::invalidArgument, "an event of cuda:{} cannot be recorded on {}", index_,
                 queue.device.toString());
  }
  HMC_ASSIGN(CuContext context, device->context());
  Current current(driver_, context);
  HMC_TRY(current.status());
  std::lock_guard lock(mutex_);
  HMC_TRY(renewWordLocked());
  // A stream of the user's often has nothing left to do: then nobody need wait for its word. Any
  // other answer may only say that the stream is another context's.
  const bool idle =
      queue.stream && driver_.cuStreamQuery(static_cast<CuStream>(queue.stream)) == kSuccess;
  if (idle) word_->reached.store(word_->goal, std::memory_order_release);
  if (!idle) HMC_TRY(enqueueWrite(*device, queue));
  recorded_ = true;
  return Status();
}

// A word that nobody waits for any more, and that no stream still writes.
Status CudaEvent::renewWordLocked() {
  if (holds_ && !recorded_ && !word_->isDone()) {
    return error(Code::invalidArgument, "an event that a queue waits for cannot be recorded");
  }
  if (recorded_ && !word_->isDone()) {
    HMC_ASSIGN(Word * fresh, words_.take());
    words_.give(std::exchange(word_, fresh));
  } else if (word_->isDone()) {
    ++word_->goal;
  }
  return Status();
}

Status CudaEvent::enqueueWrite(CudaDevice& device, const DeviceQueue& queue) {
  HMC_ASSIGN(CudaDevice::Stream on, device.streamOf(queue));
  Current current(driver_, on.context);
  HMC_TRY(current.status());
  HMC_CUDA(driver_, cuStreamWriteValue32_v2, on.stream, word_->address(), word_->goal, 0);
  return Status();
}

Status CudaEvent::signal() {
  std::lock_guard lock(mutex_);
  if (recorded_) {
    return error(Code::invalidArgument, "an event that was recorded cannot be signalled");
  }
  word_->reached.store(word_->goal, std::memory_order_release);
  return Status();
}

Result<bool> CudaEvent::passed() {
  {
    std::lock_guard lock(mutex_);
    if (word_->isDone()) return true;
    if (++polls_ % kPollsPerHealthCheck != 0) return false;
  }
  HMC_TRY(devices_[static_cast<size_t>(index_)].health());
  return false;
}

Status CudaEvent::hold(const DeviceQueue& queue) {
  HMC_ASSIGN(CudaDevice * device, deviceOf(queue));
  std::lock_guard lock(mutex_);
  if (word_->isDone()) return Status();
  HMC_ASSIGN(CudaDevice::Stream on, device->streamOf(queue));
  Current current(driver_, on.context);
  HMC_TRY(current.status());
  HMC_CUDA(driver_, cuStreamWaitValue32_v2, on.stream, word_->address(), word_->goal, kWaitAtLeast);
  holds_ = true;
  return Status();
}

}  // namespace hmc::cuda
