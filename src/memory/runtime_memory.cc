#include "memory/runtime_memory.h"

#include "base/codec.h"
#include "base/error.h"
#include "base/random.h"

namespace hmc {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kProcessBytes = 16;

bool contains(const Region& region, const void* ptr) {
  auto* byte = static_cast<const char*>(ptr);
  return byte >= region.at(0) && static_cast<size_t>(byte - region.at(0)) < region.size;
}

}  // namespace

RuntimeMemory::RuntimeMemory(const Backend& owner, Runtime& runtime)
    : owner_(owner), runtime_(runtime), process_(randomBytes(kProcessBytes)) {}

RuntimeMemory::Opened::~Opened() {
  UsedDevice used(runtime, index);
  runtime.close(base, handle);
}

RuntimeMemory::~RuntimeMemory() {
  attached_.clear();
  while (!blocks_.empty()) (void)release(blocks_.begin()->first);
}

Result<void*> RuntimeMemory::ask(int index, size_t size) {
  auto made = runtime_.allocate(size);
  if (made.ok() || made.status().code() != Code::exhausted) return made;
  auto space = runtime_.space();
  if (!space.ok()) return made;
  return error(Code::exhausted, "{} has no {} bytes: {} of {} are free ({})",
               device(index).toString(), size, space->free, space->total, made.status().message());
}

Result<Region> RuntimeMemory::allocate(int index, size_t size) {
  if (size == 0) return error(Code::invalidArgument, "allocate 1 byte or more, not 0");
  HMC_ASSIGN(const Runtime::Space space, runtime_.space());
  if (size > space.total) {
    return error(Code::exhausted, "{} has no {} bytes: it has {}", device(index).toString(), size,
                 space.total);
  }
  HMC_ASSIGN(void* base, ask(index, size));
  size_t whole = size;
  if (reinterpret_cast<uintptr_t>(base) % kPage != 0) {
    // A small piece of what the runtime keeps for such.
    HMC_TRY(runtime_.release(base));
    whole = size + kPage - 1;
    HMC_ASSIGN(base, ask(index, whole));
  }
  const size_t past = reinterpret_cast<uintptr_t>(base) % kPage;
  char* first = static_cast<char*>(base) + (past == 0 ? 0 : kPage - past);
  const Region region{first, size, device(index)};
  std::lock_guard lock(mutex_);
  blocks_.emplace(first, Block{region, base, whole, {}});
  return region;
}

bool RuntimeMemory::isAllocated(const void* ptr) {
  std::lock_guard lock(mutex_);
  return blocks_.count(static_cast<const char*>(ptr)) != 0;
}

Status RuntimeMemory::release(const void* ptr) {
  std::unique_lock lock(mutex_);
  auto node = blocks_.extract(static_cast<const char*>(ptr));
  lock.unlock();
  if (node.empty()) {
    return error(Code::invalidArgument, "{} is not memory that {} allocated", ptr,
                 owner_.facts().name);
  }
  const Block& block = node.mapped();
  UsedDevice used(runtime_, block.device.index);
  HMC_TRY(used.status());
  if (!block.handle.empty()) runtime_.withdraw(block.handle);
  return runtime_.release(block.base);
}

Result<Region> RuntimeMemory::locate(const void* ptr) {
  if (!ptr) return error(Code::notFound, "a null pointer is no device memory");
  {
    std::lock_guard lock(mutex_);
    auto block = findAround(blocks_, ptr);
    if (block != blocks_.end()) return Region(block->second);
    auto attached = findAround(attached_, ptr);
    if (attached != attached_.end()) return Region(attached->second);
  }
  HMC_ASSIGN(const Region found, runtime_.locate(ptr));
  if (contains(found, ptr)) return found;
  return error(Code::notFound, "{} is not memory of {}", ptr, owner_.facts().name);
}

// With the device current. Runtimes hand out one handle for an allocation: ours is kept.
Result<std::string> RuntimeMemory::handleOf(const Region& whole, const char*& base) {
  std::lock_guard lock(mutex_);
  base = whole.at(0);
  auto found = blocks_.find(base);
  if (found == blocks_.end()) return runtime_.exportMemory(whole);
  Block& block = found->second;
  base = static_cast<const char*>(block.base);
  if (block.handle.empty()) {
    const Region all{block.base, block.whole, block.device};
    HMC_ASSIGN(block.handle, runtime_.exportMemory(all));
  }
  return block.handle;
}

Result<Share> RuntimeMemory::share(const Region& region, ShareFor purpose) {
  HMC_ASSIGN(const Region whole, locate(region.ptr));
  const auto offset = static_cast<uint64_t>(region.at(0) - whole.at(0));
  if (!fits(offset, region.size, whole.size)) {
    return error(Code::outOfRange, "{} bytes at offset {} would pass the end of {} bytes on {}",
                 region.size, offset, whole.size, whole.device.toString());
  }
  UsedDevice used(runtime_, whole.device.index);
  HMC_TRY(used.status());
  Share share;
  if (purpose == ShareFor::nic) {
    HMC_TRY(runtime_.exportDmaBuf(region, share));
  } else {
    const char* base = nullptr;
    HMC_ASSIGN(const std::string handle, handleOf(whole, base));
    share.offset = static_cast<uint64_t>(region.at(0) - base);
    share.handle =
        Writer().raw(process_).u64(reinterpret_cast<uintptr_t>(region.ptr)).raw(handle).take();
  }
  share.size = region.size;
  share.kind = owner_.facts().kind;
  share.device = owner_.facts().devices[static_cast<size_t>(whole.device.index)].uuid;
  share.purpose = purpose;
  return share;
}

Result<std::shared_ptr<RuntimeMemory::Opened>> RuntimeMemory::open(int index,
                                                                   const std::string& handle) {
  std::lock_guard lock(mutex_);
  std::erase_if(opened_, [](const auto& entry) { return entry.second.expired(); });
  if (auto known = opened_[handle].lock()) return known;
  HMC_ASSIGN(void* base, runtime_.importMemory(handle));
  auto made = std::make_shared<Opened>(runtime_, index, handle, base);
  opened_[handle] = made;
  return made;
}

// With the device current.
Result<Region> RuntimeMemory::attach(const Share& share, int index) {
  Reader reader(share.handle);
  const std::string_view process = reader.raw(kProcessBytes);
  const uint64_t address = reader.u64();
  const std::string handle(reader.raw(reader.left()));
  if (handle.empty() || share.size == 0) {
    return error(Code::invalidArgument, "a share of {} has {} bytes and a handle of {}",
                 owner_.facts().name, share.size, handle.size());
  }
  Attached attached{{nullptr, share.size, device(index)}, nullptr};
  if (process == process_) {
    attached.ptr = reinterpret_cast<void*>(address);  // NOLINT
  } else {
    HMC_ASSIGN(attached.opened, open(index, handle));
    attached.ptr = static_cast<char*>(attached.opened->base) + share.offset;
    // Runtimes that do not know what they opened are believed: the peer has checked it.
    auto whole = runtime_.locate(attached.opened->base);
    if (whole.ok() && !fits(share.offset, share.size, whole->size)) {
      return error(Code::outOfRange,
                   "{} bytes at offset {} would pass the end of a peer's {} bytes", share.size,
                   share.offset, whole->size);
    }
  }
  std::lock_guard lock(mutex_);
  const Region region = attached;
  attached_.emplace(region.at(0), std::move(attached));
  return region;
}

Status RuntimeMemory::detach(const Region& region) {
  std::lock_guard lock(mutex_);
  auto [first, end] = attached_.equal_range(region.at(0));
  for (auto it = first; it != end; ++it) {
    if (it->second.size != region.size) continue;
    attached_.erase(it);  // with the lock held: nobody may open what is about to be closed
    return Status();
  }
  return error(Code::invalidArgument, "{} is not memory that {} attached", region.ptr,
               owner_.facts().name);
}

}  // namespace hmc
