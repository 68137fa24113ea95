#include "fakes/fake_accelerator.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <sstream>

#include "base/error.h"
#include "fakes/fake_accelerator_event.h"

namespace hmc {

namespace {

constexpr std::chrono::seconds kDrainTime{60};

bool overlap(const char* a, const char* b, size_t size) {
  std::less<const char*> before;
  return before(a, b + size) && before(b, a + size);
}

// The same for every process of the machine.
DeviceUuid uuidOf(DeviceKind kind, int number) {
  DeviceUuid uuid;
  const std::string text = std::string("fake ") + deviceKindName(kind);
  std::copy_n(text.begin(), std::min<size_t>(text.size(), 12), uuid.bytes.begin());
  uuid.bytes[15] = static_cast<uint8_t>(number);
  return uuid;
}

Backend::Facts factsOf(const FakeOptions& options) {
  const std::string name = std::string("fake ") + deviceKindName(options.kind);
  Backend::Facts facts{options.kind, name, {}};
  std::vector<int> numbers = options.visible;
  for (int i = 0; i < options.deviceCount && options.visible.empty(); ++i) numbers.push_back(i);
  for (int number : numbers) {
    if (number < 0 || number >= options.deviceCount) continue;
    facts.devices.push_back({uuidOf(options.kind, number), fmt::format("{} {}", name, number)});
  }
  return facts;
}

}  // namespace

FakeOptions FakeOptions::fromEnvironment() {
  FakeOptions options;
  if (const char* count = std::getenv("HMC_FAKE_DEVICES")) options.deviceCount = std::atoi(count);
  const char* list = std::getenv("HMC_FAKE_VISIBLE_DEVICES");
  std::istringstream numbers(list ? list : "");
  for (std::string number; std::getline(numbers, number, ',');) {
    options.visible.push_back(std::atoi(number.c_str()));
  }
  return options;
}

FakeAccelerator::FakeAccelerator(FakeOptions options)
    : Backend(factsOf(options)), options_(std::move(options)), memory_(*this) {
  for (int i = 0; i < facts().deviceCount() * DeviceQueue::kLanes; ++i) {
    queues_.push_back(makeQueue(i / DeviceQueue::kLanes));
  }
}

FakeAccelerator::~FakeAccelerator() {
  // They may wait for each other, and copies may still run: all end before any memory goes.
  for (auto& queue : queues_) queue->stop();
  for (auto& [handle, stream] : streams_) stream.second->stop();
}

std::unique_ptr<FakeQueue> FakeAccelerator::makeQueue(int index) {
  return std::make_unique<FakeQueue>("fake queue", options_.delay,
                                     [this, index] { return healthOf(index).ok(); });
}

void FakeAccelerator::failNext(Call call, Status why, int nth) {
  std::lock_guard lock(mutex_);
  faults_[call] = {std::move(why), nth};
}

void FakeAccelerator::failDevice(int index, Status why) {
  std::lock_guard lock(mutex_);
  failed_[index] = std::move(why);
}

Status FakeAccelerator::stall(const DeviceQueue& queue, bool stalled) {
  // Without a stream, all of the device's own.
  for (uint8_t lane = 0; lane < (queue.stream ? 1 : DeviceQueue::kLanes); ++lane) {
    HMC_ASSIGN(FakeQueue * found, queueOf({queue.device, queue.stream, lane}));
    found->stall(stalled);
  }
  return Status();
}

uint64_t FakeAccelerator::left(int index) {
  const size_t first = static_cast<size_t>(index) * DeviceQueue::kLanes;
  uint64_t all = 0;
  for (size_t lane = 0; lane < DeviceQueue::kLanes; ++lane) all += queues_.at(first + lane)->left();
  return all;
}

Status FakeAccelerator::fault(Call call) {
  std::lock_guard lock(mutex_);
  Fault& planned = faults_[call];
  if (planned.countdown == 0 || --planned.countdown > 0) return Status();
  return planned.why;
}

Status FakeAccelerator::healthOf(int index) {
  std::lock_guard lock(mutex_);
  auto found = failed_.find(index);
  return found == failed_.end() ? Status() : found->second;
}

Result<Region> FakeAccelerator::allocate(int index, size_t size) {
  HMC_TRY(fault(Call::allocate));
  HMC_TRY(checkIndex(index));
  HMC_TRY(healthOf(index));
  return memory_.allocate(index, size);
}

// As on the real ones, memory goes only after everything that was queued has run.
Status FakeAccelerator::drainAll() {
  std::vector<FakeQueue*> all;
  {
    std::lock_guard lock(mutex_);
    for (auto& queue : queues_) all.push_back(queue.get());
    for (auto& [handle, stream] : streams_) all.push_back(stream.second.get());
  }
  const Deadline deadline(kDrainTime);
  for (FakeQueue* queue : all) {
    if (queue->drain(deadline)) continue;
    return error(Code::deadlineExceeded, "a queue of {} did not run empty", facts().name);
  }
  return Status();
}

Status FakeAccelerator::release(void* ptr) {
  HMC_TRY(drainAll());
  return memory_.remove(ptr, /*attached=*/false);
}

Status FakeAccelerator::detach(const Region& region) {
  HMC_TRY(drainAll());
  return memory_.remove(region.ptr, /*attached=*/true);
}

Status FakeAccelerator::checkBatch(const CopyBatch& batch, const DeviceQueue& queue) const {
  HMC_TRY(checkCopy(batch, queue));
  return batch.forEachPiece([&](const CopyPiece& piece) {
    if (!overlap(static_cast<char*>(piece.dst), static_cast<const char*>(piece.src), piece.size))
      return Status();
    return error(Code::invalidArgument, "a copy of {} bytes on {} overlaps itself", piece.size,
                 facts().name);
  });
}

Status FakeAccelerator::copy(const CopyBatch& batch, const DeviceQueue& queue) {
  HMC_TRY(fault(Call::copy));
  HMC_TRY(checkBatch(batch, queue));
  HMC_TRY(healthOf(queue.device.index));
  HMC_ASSIGN(FakeQueue * found, queueOf(queue));
  std::vector<FakeQueue::Copy> copies;
  HMC_TRY(batch.forEachPiece([&](const CopyPiece& piece) -> Status {
    HMC_ASSIGN(char* to, memory_.bytesOf({piece.dst, piece.size, batch.to.device}));
    HMC_ASSIGN(char* from,
               memory_.bytesOf({const_cast<void*>(piece.src), piece.size, batch.from.device}));
    copies.push_back({to, from, piece.size});
    return Status();
  }));
  countUnpinned(batch);
  // A caller must not count on an order within a batch.
  std::reverse(copies.begin(), copies.end());
  found->push(std::move(copies));
  ++batches_;
  return Status();
}

Status FakeAccelerator::zero(const Region& region, const DeviceQueue& queue) {
  HMC_TRY(healthOf(queue.device.index));
  HMC_ASSIGN(FakeQueue * found, queueOf(queue));
  HMC_ASSIGN(char* bytes, memory_.bytesOf(region));
  found->push({{bytes, nullptr, region.size}});
  return Status();
}

bool FakeAccelerator::isPinned(const void* ptr, size_t size) {
  auto* byte = static_cast<const char*>(ptr);
  auto next = pinned_.upper_bound(byte);
  if (next == pinned_.begin()) return false;
  auto found = std::prev(next);
  return fits(static_cast<size_t>(byte - found->first), size, found->second);
}

void FakeAccelerator::countUnpinned(const CopyBatch& batch) {
  const bool toHost = batch.to.device.isHost();
  if (!toHost && !batch.from.device.isHost()) return;
  std::lock_guard lock(mutex_);
  (void)batch.forEachPiece([&](const CopyPiece& piece) {
    if (!isPinned(toHost ? piece.dst : piece.src, piece.size)) ++unpinnedCopies_;
    return Status();
  });
}

size_t FakeAccelerator::pinned() {
  std::lock_guard lock(mutex_);
  return pinned_.size();
}

size_t FakeAccelerator::unpinnedCopies() {
  std::lock_guard lock(mutex_);
  return unpinnedCopies_;
}

Result<FakeQueue*> FakeAccelerator::queueOf(const DeviceQueue& queue) {
  if (queue.device.kind != options_.kind) {
    return error(Code::invalidArgument, "a queue of {} is not one of {}", queue.device.toString(),
                 facts().name);
  }
  HMC_TRY(checkIndex(queue.device.index));
  if (!queue.stream) {
    return queues_[static_cast<size_t>(queue.device.index) * DeviceQueue::kLanes + queue.lane]
        .get();
  }
  std::lock_guard lock(mutex_);
  auto found = streams_.find(queue.stream);
  if (found == streams_.end() || found->second.first != queue.device.index) {
    return error(Code::invalidArgument, "{} is not a stream of {}", queue.stream,
                 queue.device.toString());
  }
  return found->second.second.get();
}

Result<std::unique_ptr<DeviceEvent>> FakeAccelerator::event(int index) {
  HMC_TRY(checkIndex(index));
  HMC_TRY(healthOf(index));
  return std::unique_ptr<DeviceEvent>(std::make_unique<FakeEvent>(*this, index));
}

Result<DeviceQueue> FakeAccelerator::createStream(int index) {
  HMC_TRY(checkIndex(index));
  auto queue = makeQueue(index);
  void* handle = queue.get();
  std::lock_guard lock(mutex_);
  streams_.emplace(handle, std::make_pair(index, std::move(queue)));
  return DeviceQueue{Device{options_.kind, index}, handle};
}

Result<Share> FakeAccelerator::share(const Region& region, ShareFor purpose) {
  HMC_TRY(fault(Call::share));
  HMC_ASSIGN(Share made, memory_.share(region));
  made.purpose = purpose;
  return made;
}

Result<std::unique_ptr<Reservation>> FakeAccelerator::reserve(size_t size, void* at) {
  return memory_.reserve(size, at);
}

Result<Region> FakeAccelerator::attach(const Share& share, void* at) {
  HMC_TRY(fault(Call::attach));
  if (share.kind != options_.kind || share.purpose != ShareFor::process || share.fds.size() != 1) {
    return error(Code::invalidArgument, "{} cannot attach a share of {} for a {}", facts().name,
                 deviceKindName(share.kind),
                 share.purpose == ShareFor::process ? "process" : "NIC");
  }
  HMC_ASSIGN(int index, indexOf(share.device));
  return memory_.attach(share, index, at);
}

Result<std::unique_ptr<PinnedMemory>> FakeAccelerator::pin(const Region& host) {
  HMC_TRY(fault(Call::pin));
  HMC_TRY(checkPinnable(host));
  std::lock_guard lock(mutex_);
  auto next = pinned_.lower_bound(host.at(0));
  const bool above = next != pinned_.end() && next->first < host.at(host.size);
  const bool below =
      next != pinned_.begin() && std::prev(next)->first + std::prev(next)->second > host.at(0);
  if (above || below) {
    return error(Code::alreadyExists, "some of {} bytes at {} is pinned already", host.size,
                 host.ptr);
  }
  pinned_.emplace(host.at(0), host.size);
  return std::unique_ptr<PinnedMemory>(std::make_unique<FakePin>(*this, host.at(0)));
}

}  // namespace hmc
