#include "fakes/fake_runtime.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "base/error.h"
#include "memory/copy.h"

namespace hmc {

namespace {

constexpr size_t kInPage = 256;  // where in a page allocations begin

thread_local int currentDevice = -1;

FakeOptions optionsOf(const FakeRuntime::Options& options) {
  FakeOptions made = FakeOptions::fromEnvironment();
  made.kind = options.kind;
  if (options.deviceless) made.deviceCount = 0;
  made.delay = std::chrono::milliseconds(5);
  const char* list = std::getenv(options.visibleDevices);
  std::istringstream numbers(list ? list : "");
  for (std::string number; std::getline(numbers, number, ',');) {
    made.visible.push_back(std::atoi(number.c_str()));
  }
  return made;
}

Status unknown(const char* what, const void* which) {
  return error(Code::invalidArgument, "{} {} is unknown", what, which);
}

}  // namespace

FakeRuntime::FakeRuntime(const Options& options)
    : options_(options), accelerator_(optionsOf(options)) {}

const DeviceUuid& FakeRuntime::uuid(int index) const {
  return accelerator_.facts().devices[static_cast<size_t>(index)].uuid;
}

std::string FakeRuntime::pciAddress(int index) const {
  return fmt::format("0000:{:02X}:00.0", 10 + uuid(index).bytes[15]);
}

Status FakeRuntime::use(int index) {
  HMC_TRY(accelerator_.checkIndex(index));
  currentDevice = index;
  return Status();
}

int FakeRuntime::current() const {
  return currentDevice < 0 && !options_.startsNowhere ? 0 : currentDevice;
}

Status FakeRuntime::allowPeer(int index) {
  HMC_TRY(accelerator_.checkIndex(index));
  std::lock_guard lock(mutex_);
  peers_[{current(), index}] = true;
  return Status();
}

Result<void*> FakeRuntime::allocate(size_t size) {
  if (size > options_.space) return error(Code::exhausted, "out of memory");
  HMC_ASSIGN(const Region region, accelerator_.allocate(current(), size + kInPage));
  HMC_TRY(soil(region));
  std::lock_guard lock(mutex_);
  const Region visible = region.slice(kInPage, size);
  allocations_.emplace(visible.ptr, visible);
  return visible.ptr;
}

// What somebody left there; not all of it, because much of it would take memory.
Status FakeRuntime::soil(const Region& region) {
  std::string bytes(std::min(region.size, size_t{1} << 18), '#');
  HMC_TRY(accelerator_.copyAll(region, {bytes.data(), bytes.size(), Device{}}, {region.device}));
  HMC_ASSIGN(auto done, accelerator_.event(region.device.index));
  HMC_TRY(done->record({region.device}));
  return waitFor(*done, kCopyTimeout);
}

Status FakeRuntime::release(void* ptr) {
  std::unique_lock lock(mutex_);
  auto node = allocations_.extract(ptr);
  lock.unlock();
  if (node.empty()) return unknown("memory", ptr);
  return accelerator_.release(static_cast<char*>(ptr) - kInPage);
}

size_t FakeRuntime::free() {
  std::lock_guard lock(mutex_);
  size_t used = 0;
  for (auto& [ptr, region] : allocations_) used += region.size;
  return options_.space - std::min(used, options_.space);
}

Result<Region> FakeRuntime::locate(const void* ptr) {
  HMC_ASSIGN(const Region whole, accelerator_.locate(ptr));
  std::lock_guard lock(mutex_);
  if (imports_.count(whole.ptr) != 0) return whole;
  auto found = allocations_.find(whole.at(kInPage));
  if (found == allocations_.end() || ptr < found->first) return unknown("memory", ptr);
  return found->second;
}

Result<void*> FakeRuntime::createStream() {
  std::lock_guard lock(mutex_);
  auto idle = idle_.find(current());
  if (idle != idle_.end()) {
    void* stream = idle->second;
    idle_.erase(idle);
    streams_.emplace(stream, current());
    return stream;
  }
  HMC_ASSIGN(const DeviceQueue queue, accelerator_.createStream(current()));
  streams_.emplace(queue.stream, current());
  return queue.stream;
}

Status FakeRuntime::destroyStream(void* stream) {
  std::lock_guard lock(mutex_);
  auto found = streams_.find(stream);
  if (found == streams_.end()) return unknown("stream", stream);
  idle_.emplace(found->second, stream);
  streams_.erase(found);
  return Status();
}

Result<DeviceQueue> FakeRuntime::queueOf(void* stream) {
  if (!stream) return DeviceQueue{device(current())};
  std::lock_guard lock(mutex_);
  auto found = streams_.find(stream);
  if (found == streams_.end()) return unknown("stream", stream);
  if (found->second != current()) {
    return error(Code::invalidArgument, "a stream of device {} is used while {} is current",
                 found->second, current());
  }
  return DeviceQueue{device(current()), stream};
}

Status FakeRuntime::synchronize() {
  std::vector<void*> mine{nullptr};
  {
    std::lock_guard lock(mutex_);
    for (auto& [stream, index] : streams_) {
      if (index == current()) mine.push_back(stream);
    }
  }
  for (void* stream : mine) {
    HMC_ASSIGN(auto event, accelerator_.event(current()));
    HMC_TRY(event->record({device(current()), stream}));
    HMC_TRY(waitFor(*event, kCopyTimeout));
  }
  return Status();
}

Status FakeRuntime::zero(void* ptr, size_t size, void* stream) {
  HMC_ASSIGN(const DeviceQueue queue, queueOf(stream));
  return accelerator_.zero({ptr, size, device(current())}, queue);
}

Status FakeRuntime::copy(void* dst, const void* src, size_t size, Direction direction,
                         void* stream) {
  HMC_ASSIGN(const DeviceQueue queue, queueOf(stream));
  auto to = locate(dst);
  auto from = locate(src);
  const Region target{dst, size, to.ok() ? to->device : Device{}};
  const Region source{const_cast<void*>(src), size, from.ok() ? from->device : Device{}};
  const bool peers = to.ok() && from.ok() && to->device != from->device;
  const Direction truth = peers                   ? Direction::betweenDevices
                          : to.ok() && from.ok()  ? Direction::onDevice
                          : to.ok() && !from.ok() ? Direction::toDevice
                                                  : Direction::toHost;
  if (truth != direction) return error(Code::invalidArgument, "a copy in the wrong direction");
  if (peers && options_.asksForPeers) {
    const int other = to->device.index == current() ? from->device.index : to->device.index;
    std::lock_guard lock(mutex_);
    if (!peers_[{current(), other}]) {
      return error(Code::invalidArgument, "device {} has no access to {}", current(), other);
    }
  }
  return accelerator_.copyAll(target, source, queue);
}

Result<FakeRuntime::Event*> FakeRuntime::createEvent() {
  HMC_ASSIGN(auto made, accelerator_.event(current()));
  return new Event{current(), std::move(made)};
}

Status FakeRuntime::record(Event* event, void* stream) {
  HMC_ASSIGN(const DeviceQueue queue, queueOf(stream));
  return event->event->record(queue);
}

Status FakeRuntime::wait(void* stream, Event* event) {
  HMC_ASSIGN(const DeviceQueue queue, queueOf(stream));
  return event->event->hold(queue);
}

// Process and descriptor, which another process of the same user can open.
Result<uint64_t> FakeRuntime::exportMemory(void* ptr) {
  std::unique_lock lock(mutex_);
  auto found = allocations_.find(ptr);
  if (found == allocations_.end()) return unknown("the beginning of an allocation", ptr);
  const Region region = found->second;
  lock.unlock();
  HMC_ASSIGN(Share share, accelerator_.share(region, ShareFor::process));
  const uint64_t handle =
      static_cast<uint64_t>(getpid()) << 32 | static_cast<unsigned>(share.fds[0].get());
  lock.lock();
  exports_.emplace(handle, std::move(share.fds[0]));
  return handle;
}

Status FakeRuntime::withdraw(uint64_t handle) {
  std::lock_guard lock(mutex_);
  return exports_.erase(handle) == 1 ? Status() : Status(Code::invalidArgument, "unknown handle");
}

Result<void*> FakeRuntime::importMemory(uint64_t handle) {
  const auto process = static_cast<pid_t>(handle >> 32);
  if (process == getpid()) return error(Code::invalidArgument, "a handle of this very process");
  {
    std::lock_guard lock(mutex_);
    for (auto& [ptr, known] : imports_) {
      if (known == handle) return error(Code::alreadyExists, "the handle is open already");
    }
  }
  Share share;
  const std::string path = fmt::format("/proc/{}/fd/{}", process, handle & 0xffffffff);
  share.fds.emplace_back(open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat status {};
  if (!share.fds[0] || fstat(share.fds[0].get(), &status) != 0) return errnoStatus("open " + path);
  share.offset = kInPage;
  share.size = static_cast<uint64_t>(status.st_size) - kInPage;
  share.kind = options_.kind;
  share.device = uuid(current());
  HMC_ASSIGN(const Region region, accelerator_.attach(share, nullptr));
  std::lock_guard lock(mutex_);
  imports_.emplace(region.ptr, handle);
  return region.ptr;
}

Status FakeRuntime::close(void* ptr) {
  std::unique_lock lock(mutex_);
  if (imports_.erase(ptr) == 0) return unknown("an import", ptr);
  lock.unlock();
  return accelerator_.detach({ptr, 0, device(current())});
}

Status FakeRuntime::closeHandle(uint64_t handle) {
  std::unique_lock lock(mutex_);
  for (auto& [ptr, known] : imports_) {
    if (known != handle) continue;
    void* found = ptr;
    lock.unlock();
    return close(found);
  }
  return error(Code::invalidArgument, "handle {} is unknown", handle);
}

Result<Share> FakeRuntime::exportDmaBuf(const void* ptr, size_t size) {
  return accelerator_.share({const_cast<void*>(ptr), size, device(current())}, ShareFor::nic);
}

Status FakeRuntime::pin(void* ptr, size_t size) {
  {
    std::lock_guard lock(mutex_);
    size_t all = size;
    for (auto& [first, pin] : pins_) all += pin.size;
    if (all > options_.pinLimit) return error(Code::exhausted, "out of registered memory");
  }
  HMC_ASSIGN(auto pinned, accelerator_.pin({ptr, size, Device{}}));
  std::lock_guard lock(mutex_);
  pins_.emplace(ptr, Pin{size, std::move(pinned)});
  return Status();
}

Status FakeRuntime::unpin(void* ptr) {
  std::lock_guard lock(mutex_);
  return pins_.erase(ptr) == 1 ? Status() : unknown("registered memory", ptr);
}

void FakeRuntime::failDevice(int index) {
  accelerator_.failDevice(index, Status(Code::failed, "the device fell off the bus"));
}

int codeOf(const Status& status, const FakeCodes& codes) {
  switch (status.code()) {
    case Code::ok:
      return 0;
    case Code::invalidArgument:
    case Code::outOfRange:
    case Code::notFound:
      return codes.badArgument;
    case Code::exhausted:
      return codes.outOfMemory;
    case Code::alreadyExists:
      return codes.alreadyRegistered;
    case Code::unsupported:
      return codes.unsupported;
    default:
      return codes.other;
  }
}

}  // namespace hmc

// For tests: every call that has to do with the device fails from now on.
HMC_FAKE_EXPORT void hmcFakeFailDevice(int index) {
  hmc::fakeRuntime().failDevice(index);
}
HMC_FAKE_EXPORT void hmcFakeUseDevice(int index) {
  (void)hmc::fakeRuntime().use(index);
}
HMC_FAKE_EXPORT int hmcFakeCurrentDevice() {
  return hmc::fakeRuntime().current();
}
// As another user of the library allocates, on the current device.
HMC_FAKE_EXPORT void* hmcFakeAllocate(size_t size) {
  auto made = hmc::fakeRuntime().allocate(size);
  return made.ok() ? *made : nullptr;
}
