#include "memory/runtime_backend.h"

#include <dlfcn.h>

#include <algorithm>

#include "base/error.h"
#include "memory/copy.h"
#include "memory/runtime_event.h"

namespace hmc {

namespace {

class RuntimePin final : public PinnedMemory {
 public:
  RuntimePin(Runtime& runtime, const Region& host) : runtime_(runtime), host_(host) {}
  ~RuntimePin() override {
    UsedDevice used(runtime_, 0);
    runtime_.unpin(host_);
  }

 private:
  Runtime& runtime_;
  const Region host_;
};

bool isLoaded(const std::string& library) {
  void* found = dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (found) dlclose(found);
  return found != nullptr;
}

}  // namespace

bool isAnyLoaded(const std::vector<std::string>& libraries) {
  return std::any_of(libraries.begin(), libraries.end(), isLoaded);
}

Result<DynamicLibrary> openRuntime(std::vector<std::string> libraries, const char* fix) {
  // Torch brings a runtime of its own: two of them in a process know nothing of each other's
  // memory.
  std::stable_partition(libraries.begin(), libraries.end(), isLoaded);
  std::string broken;
  std::string absent;
  for (const std::string& name : libraries) {
    auto opened = DynamicLibrary::open(name);
    if (opened.ok()) {
      opened->stay();
      return opened;
    }
    const std::string& why = opened.status().message();
    if (why.find(name + ": cannot open shared object file") == std::string::npos) {
      broken += why + "; ";
    } else {
      absent += (absent.empty() ? "there is no " : ", ") + name;
    }
  }
  return error(Code::unsupported, "{}{}; {}", broken, absent, fix);
}

Result<Backend*> makeBackend(Result<Backend::Facts> facts, std::unique_ptr<Runtime> runtime,
                             const char* fix) {
  if (!facts.ok()) return error(facts.status().code(), "{}; {}", facts.status().message(), fix);
  if (facts->devices.empty()) {
    return error(Code::unsupported, "{} sees no device; {}", facts->name, fix);
  }
  return new RuntimeBackend(*std::move(facts), std::move(runtime));
}

DeviceUuid uuidOfPciAddress(std::string_view address) {
  constexpr std::string_view kTag = "pci:";
  DeviceUuid uuid;
  std::copy(kTag.begin(), kTag.end(), uuid.bytes.begin());
  // Domains have four digits or eight: the last ones tell devices apart.
  const size_t room = uuid.bytes.size() - kTag.size();
  if (address.size() > room) address.remove_prefix(address.size() - room);
  std::transform(address.begin(), address.end(), uuid.bytes.begin() + kTag.size(),
                 [](char c) { return c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c; });
  return uuid;
}

RuntimeDevice::~RuntimeDevice() {
  if (!isReady()) return;
  UsedDevice used(runtime_, device_.index);
  for (void* lane : lanes_) runtime_.destroyStream(lane);
}

Status RuntimeDevice::prepare() {
  std::lock_guard lock(mutex_);
  if (isReady()) return Status();
  UsedDevice used(runtime_, device_.index);
  HMC_TRY(used.status());
  for (void*& lane : lanes_) {
    if (lane) continue;
    HMC_ASSIGN(lane, runtime_.createStream());
  }
  ready_.store(true, std::memory_order_release);
  return Status();
}

Result<void*> RuntimeDevice::streamOf(const DeviceQueue& queue) {
  if (queue.stream) return queue.stream;
  if (!isReady()) {
    Status made = prepare();
    if (!made.ok()) return made.within(device_.toString() + " cannot be used");
  }
  return lanes_[queue.lane];
}

RuntimeBackend::RuntimeBackend(Facts facts, std::unique_ptr<Runtime> runtime)
    : Backend(std::move(facts)), runtime_(std::move(runtime)), memory_(*this, *runtime_) {
  for (int index = 0; index < this->facts().deviceCount(); ++index) {
    devices_.emplace_back(*runtime_, Device{this->facts().kind, index});
  }
}

RuntimeBackend::~RuntimeBackend() {
  (void)drain();
}

Result<RuntimeDevice*> RuntimeBackend::deviceOf(const DeviceQueue& queue) {
  if (queue.device.kind != facts().kind || !checkIndex(queue.device.index).ok() ||
      queue.lane >= DeviceQueue::kLanes) {
    return error(Code::invalidArgument, "a queue of {} is none of the {} devices of {}",
                 queue.device.toString(), facts().deviceCount(), facts().name);
  }
  return &devices_[static_cast<size_t>(queue.device.index)];
}

Status RuntimeBackend::zero(const Region& region) {
  const DeviceQueue queue{region.device};
  HMC_ASSIGN(void* stream, devices_[static_cast<size_t>(region.device.index)].streamOf(queue));
  HMC_TRY(runtime_->zero(region.ptr, region.size, stream));
  HMC_ASSIGN(auto done, event(region.device.index));
  HMC_TRY(done->record(queue));
  return waitFor(*done, kCopyTimeout);
}

Result<Region> RuntimeBackend::allocate(int index, size_t size) {
  HMC_TRY(checkIndex(index));
  UsedDevice used(*runtime_, index);
  HMC_TRY(used.status());
  HMC_ASSIGN(const Region region, memory_.allocate(index, size));
  Status zeroed = zero(region);
  if (zeroed.ok()) return region;
  (void)memory_.release(region.ptr);
  return zeroed;
}

Status RuntimeBackend::drain() {
  for (RuntimeDevice& device : devices_) {
    if (!device.isReady()) continue;
    for (uint8_t lane = 0; lane < DeviceQueue::kLanes; ++lane) {
      HMC_ASSIGN(auto done, event(device.device().index));
      HMC_TRY(done->record({device.device(), nullptr, lane}));
      HMC_TRY(waitFor(*done, kCopyTimeout));
    }
    if (!usersStreams_.load()) continue;
    UsedDevice used(*runtime_, device.device().index);
    HMC_TRY(used.status());
    HMC_TRY(runtime_->synchronize());
  }
  return Status();
}

Status RuntimeBackend::release(void* ptr) {
  if (memory_.isAllocated(ptr)) HMC_TRY(drain());
  return memory_.release(ptr);
}

Status RuntimeBackend::detach(const Region& region) {
  HMC_TRY(drain());
  return memory_.detach(region);
}

Status RuntimeBackend::copy(const CopyBatch& batch, const DeviceQueue& queue) {
  HMC_TRY(checkCopy(batch, queue));
  HMC_ASSIGN(void* stream, devices_[static_cast<size_t>(queue.device.index)].streamOf(queue));
  UsedDevice used(*runtime_, queue.device.index);
  HMC_TRY(used.status());
  if (queue.stream) usersStreams_.store(true);
  return batch.forEachPiece([&](const CopyPiece& piece) {
    return runtime_->copy(piece, batch.to.device, batch.from.device, stream);
  });
}

Result<std::unique_ptr<DeviceEvent>> RuntimeBackend::event(int index) {
  HMC_TRY(checkIndex(index));
  UsedDevice used(*runtime_, index);
  HMC_TRY(used.status());
  HMC_ASSIGN(void* made, runtime_->createEvent());
  return std::unique_ptr<DeviceEvent>(std::make_unique<RuntimeEvent>(*this, index, made));
}

Result<Share> RuntimeBackend::share(const Region& region, ShareFor purpose) {
  return memory_.share(region, purpose);
}

Result<std::unique_ptr<Reservation>> RuntimeBackend::reserve(size_t size, void* /*at*/) {
  return error(Code::unsupported,
               "{} maps memory where it likes: {} bytes of addresses cannot be set aside for it",
               facts().name, size);
}

Result<Region> RuntimeBackend::attach(const Share& share, void* at) {
  if (share.kind != facts().kind || share.purpose != ShareFor::process) {
    return error(Code::invalidArgument, "{} cannot attach a share of {} for a {}", facts().name,
                 deviceKindName(share.kind),
                 share.purpose == ShareFor::process ? "process" : "NIC");
  }
  if (at) {
    return error(Code::unsupported, "{} maps memory where it likes, not at {}", facts().name, at);
  }
  HMC_ASSIGN(const int index, indexOf(share.device));
  UsedDevice used(*runtime_, index);
  HMC_TRY(used.status());
  return memory_.attach(share, index);
}

Result<std::unique_ptr<PinnedMemory>> RuntimeBackend::pin(const Region& host) {
  HMC_TRY(checkPinnable(host));
  // All devices of the kind get it, whichever is current.
  UsedDevice used(*runtime_, 0);
  HMC_TRY(used.status());
  HMC_TRY(runtime_->pin(host));
  return std::unique_ptr<PinnedMemory>(std::make_unique<RuntimePin>(*runtime_, host));
}

}  // namespace hmc
