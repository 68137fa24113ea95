#include "fakes/fake_accelerator.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <functional>

#include "base/error.h"

namespace hmc {

namespace {

Result<Mapping> reserveAddresses(size_t size) {
  void* ptr = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (ptr == MAP_FAILED) return errnoStatus(fmt::format("reserve {} addresses", size));
  return Mapping(ptr, size);
}

bool overlap(const Region& a, const Region& b, size_t size) {
  std::less<const char*> before;
  return before(a.at(0), b.at(size)) && before(b.at(0), a.at(size));
}

}  // namespace

FakeAccelerator::FakeAccelerator(FakeOptions options)
    : Backend(
          {options.kind, std::string("fake ") + deviceKindName(options.kind), options.deviceCount}),
      options_(options) {
  for (int i = 0; i < options.deviceCount; ++i) {
    queues_.push_back(std::make_unique<FakeQueue>("fake device", options.delay));
  }
}

FakeAccelerator::~FakeAccelerator() {
  // Copies may still run: their threads end before the memory goes.
  queues_.clear();
  streams_.clear();
}

Status FakeAccelerator::checkIndex(int index) const {
  if (index >= 0 && index < options_.deviceCount) return Status();
  return error(Code::invalidArgument, "device {} does not exist: {} has {} devices", index,
               facts().name, options_.deviceCount);
}

void FakeAccelerator::failNext(Call call, Status why, int nth) {
  std::lock_guard lock(mutex_);
  faults_[call] = {std::move(why), nth};
}

Status FakeAccelerator::fault(Call call) {
  std::lock_guard lock(mutex_);
  Fault& planned = faults_[call];
  if (planned.countdown == 0 || --planned.countdown > 0) return Status();
  return planned.why;
}

size_t FakeAccelerator::live() {
  std::lock_guard lock(mutex_);
  return blocks_.size();
}

FakeAccelerator::Blocks::const_iterator FakeAccelerator::around(const void* ptr) const {
  auto* byte = static_cast<const char*>(ptr);
  auto next = blocks_.upper_bound(byte);
  if (next == blocks_.begin()) return blocks_.end();
  auto found = std::prev(next);
  return byte < found->first + found->second.size ? found : blocks_.end();
}

Result<Region> FakeAccelerator::add(Block block) {
  char* ptr = block.address.get();
  Region region{ptr, block.size, Device{options_.kind, block.index}};
  std::lock_guard lock(mutex_);
  blocks_.emplace(ptr, std::move(block));
  return region;
}

Result<Region> FakeAccelerator::allocate(int index, size_t size) {
  HMC_TRY(fault(Call::allocate));
  HMC_TRY(checkIndex(index));
  HMC_ASSIGN(auto memory, createSharedMemory(size));
  HMC_ASSIGN(auto address, reserveAddresses(size));
  char* first = memory.mapping.get();
  return add({std::move(address), std::move(memory.mapping), first, std::move(memory.fd), size,
              index, false});
}

void FakeAccelerator::drainAll() {
  std::vector<FakeQueue*> all;
  {
    std::lock_guard lock(mutex_);
    for (auto& queue : queues_) all.push_back(queue.get());
    for (auto& [handle, stream] : streams_) all.push_back(stream.second.get());
  }
  for (FakeQueue* queue : all) queue->drain();
}

// As on the real ones, memory goes only after everything that was queued has run.
Status FakeAccelerator::remove(const void* ptr, bool attached) {
  drainAll();
  Blocks::node_type gone;  // unmapped after the lock is given back
  std::lock_guard lock(mutex_);
  auto found = blocks_.find(static_cast<const char*>(ptr));
  if (found == blocks_.end() || found->second.attached != attached) {
    return error(Code::invalidArgument, "{} was not {} by {}", ptr,
                 attached ? "attached" : "allocated", facts().name);
  }
  gone = blocks_.extract(found);
  return Status();
}

Status FakeAccelerator::release(void* ptr) {
  return remove(ptr, false);
}

Status FakeAccelerator::detach(const Region& region) {
  return remove(region.ptr, true);
}

Result<char*> FakeAccelerator::bytesOf(const Region& region) {
  if (region.device.isHost()) return region.at(0);
  std::lock_guard lock(mutex_);
  auto found = around(region.ptr);
  if (found == blocks_.end()) {
    return error(Code::invalidArgument, "{} is not memory of {}", region.ptr, facts().name);
  }
  const Block& block = found->second;
  auto offset = static_cast<size_t>(region.at(0) - found->first);
  if (!fits(offset, region.size, block.size)) {
    return error(Code::outOfRange, "{} bytes at offset {} would pass the end of {} bytes",
                 region.size, offset, block.size);
  }
  if (region.device.index != block.index) {
    return error(Code::invalidArgument, "{} is on device {}, not on {}", region.ptr, block.index,
                 region.device.index);
  }
  return block.first + offset;
}

Status FakeAccelerator::checkCopy(const Region& dst, const Region& src) const {
  if (dst.size < src.size) {
    return error(Code::outOfRange, "{} bytes cannot be copied into {} bytes", src.size, dst.size);
  }
  for (auto* side : {&dst, &src}) {
    if (side->device.isHost() || side->device.kind == options_.kind) continue;
    return error(Code::invalidArgument, "{} cannot reach {}", facts().name,
                 side->device.toString());
  }
  if (dst.device.isHost() && src.device.isHost()) {
    return error(Code::invalidArgument, "{} does not copy within the host", facts().name);
  }
  if (overlap(dst, src, src.size)) {
    return error(Code::invalidArgument, "a copy of {} bytes on {} overlaps itself", src.size,
                 facts().name);
  }
  return Status();
}

Status FakeAccelerator::copy(const Region& dst, const Region& src, const Stream* stream) {
  HMC_TRY(fault(Call::copy));
  HMC_TRY(checkCopy(dst, src));
  if (src.size == 0) return Status();
  HMC_ASSIGN(char* to, bytesOf(dst.slice(0, src.size)));
  HMC_ASSIGN(char* from, bytesOf(src));
  Stream own{dst.device.isHost() ? src.device : dst.device};
  HMC_ASSIGN(FakeQueue * queue, queueOf(stream ? *stream : own));
  queue->push({to, from, src.size});
  if (!stream) queue->drain();
  return Status();
}

Result<FakeQueue*> FakeAccelerator::queueOf(const Stream& stream) {
  if (stream.device.kind != options_.kind) {
    return error(Code::invalidArgument, "a stream of {} is not one of {}", stream.device.toString(),
                 facts().name);
  }
  HMC_TRY(checkIndex(stream.device.index));
  if (!stream.handle) return queues_[static_cast<size_t>(stream.device.index)].get();
  std::lock_guard lock(mutex_);
  auto found = streams_.find(stream.handle);
  if (found == streams_.end() || found->second.first != stream.device.index) {
    return error(Code::invalidArgument, "{} is not a stream of {}", stream.handle,
                 stream.device.toString());
  }
  return found->second.second.get();
}

Status FakeAccelerator::wait(const Stream& stream) {
  HMC_ASSIGN(FakeQueue * queue, queueOf(stream));
  queue->drain();
  return Status();
}

Result<Stream> FakeAccelerator::createStream(int index) {
  HMC_TRY(checkIndex(index));
  auto queue = std::make_unique<FakeQueue>("fake stream", options_.delay);
  void* handle = queue.get();
  std::lock_guard lock(mutex_);
  streams_.emplace(handle, std::make_pair(index, std::move(queue)));
  return Stream{Device{options_.kind, index}, handle};
}

Result<Region> FakeAccelerator::locate(const void* ptr) {
  std::lock_guard lock(mutex_);
  auto found = around(ptr);
  if (found == blocks_.end()) {
    return error(Code::notFound, "{} is not memory of {}", ptr, facts().name);
  }
  return Region{const_cast<char*>(found->first), found->second.size,
                Device{options_.kind, found->second.index}};
}

Result<Share> FakeAccelerator::share(const Region& region) {
  HMC_TRY(fault(Call::share));
  HMC_TRY(bytesOf(region).status());
  std::lock_guard lock(mutex_);
  auto found = around(region.ptr);
  if (found == blocks_.end() || found->second.attached) {
    return error(Code::unsupported, "{} can only share what it allocated", facts().name);
  }
  Fd fd(fcntl(found->second.fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!fd) return errnoStatus("duplicate the descriptor of fake memory");
  auto offset = static_cast<uint64_t>(region.at(0) - found->first);
  return Share{std::move(fd), {}, offset, region.size, region.device};
}

Result<Region> FakeAccelerator::attach(const Share& share) {
  HMC_TRY(fault(Call::attach));
  if (share.device.kind != options_.kind || !share.fd) {
    return error(Code::invalidArgument, "{} cannot attach a share of {}", facts().name,
                 share.device.toString());
  }
  HMC_TRY(checkIndex(share.device.index));
  HMC_ASSIGN(auto window, mapWindow(share.fd.get(), share.offset, share.size));
  HMC_ASSIGN(auto address, reserveAddresses(share.size));
  return add({std::move(address), std::move(window.mapping), window.ptr, Fd(), share.size,
              share.device.index, true});
}

}  // namespace hmc
