#include "fakes/fake_accelerator_memory.h"

#include <fcntl.h>

#include "memory/range_error.h"

namespace hmc {

namespace {

Result<Mapping> reserveAddresses(size_t size) {
  void* ptr = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (ptr == MAP_FAILED) return errnoStatus(fmt::format("reserve {} addresses", size));
  return Mapping(ptr, size);
}

}  // namespace

size_t FakeMemory::count() {
  std::lock_guard lock(mutex_);
  return blocks_.size();
}

Result<Region> FakeMemory::add(char* ptr, Block block) {
  Region region{ptr, block.size, device(block.index)};
  std::lock_guard lock(mutex_);
  blocks_.emplace(ptr, std::move(block));
  return region;
}

Result<Region> FakeMemory::allocate(int index, size_t size) {
  HMC_ASSIGN(auto memory, createSharedMemory(size));
  HMC_ASSIGN(auto address, reserveAddresses(size));
  char* first = memory.mapping.get();
  char* ptr = address.get();
  return add(ptr, {std::move(address), std::move(memory.mapping), first, std::move(memory.fd), size,
                   index, false});
}

Result<Region> FakeMemory::attach(const Share& share, int index, void* at) {
  HMC_ASSIGN(auto window, mapWindow(share.fds[0].get(), share.offset, share.size));
  if (at) {
    if (share.offset % Reservations::kAlignment != 0) {
      return error(Code::invalidArgument,
                   "offset {} of a share cannot be placed: not aligned to {}", share.offset,
                   Reservations::kAlignment);
    }
  }
  HMC_ASSIGN(auto address, at ? reservations_.take(at, share.size) : reserveAddresses(share.size));
  char* ptr = address.get();
  return add(ptr, {std::move(address), std::move(window.mapping), window.ptr, Fd(), share.size,
                   index, true});
}

Status FakeMemory::remove(const void* ptr, bool attached) {
  Blocks::node_type gone;  // unmapped after the lock is given back
  std::lock_guard lock(mutex_);
  auto found = blocks_.find(static_cast<const char*>(ptr));
  if (found == blocks_.end() || found->second.attached != attached) {
    return error(Code::invalidArgument, "{} was not {} by {}", ptr,
                 attached ? "attached" : "allocated", owner_.facts().name);
  }
  gone = blocks_.extract(found);
  return Status();
}

Result<char*> FakeMemory::bytesOf(const Region& region) {
  if (region.device.isHost()) return region.at(0);
  std::lock_guard lock(mutex_);
  auto found = findAround(blocks_, region.ptr);
  if (found == blocks_.end()) {
    return error(Code::invalidArgument, "{} is not memory of {}", region.ptr, owner_.facts().name);
  }
  const Block& block = found->second;
  auto offset = static_cast<size_t>(region.at(0) - found->first);
  if (!fits(offset, region.size, block.size)) {
    return rangeError("access", region.size, "", offset, block.size);
  }
  if (region.device.index != block.index) {
    return error(Code::invalidArgument, "{} is on device {}, not on {}", region.ptr, block.index,
                 region.device.index);
  }
  return block.first + offset;
}

Result<Region> FakeMemory::locate(const void* ptr) {
  std::lock_guard lock(mutex_);
  auto found = findAround(blocks_, ptr);
  if (found == blocks_.end()) {
    return error(Code::notFound, "{} is not memory of {}", ptr, owner_.facts().name);
  }
  return Region{const_cast<char*>(found->first), found->second.size, device(found->second.index)};
}

Result<Share> FakeMemory::share(const Region& region) {
  HMC_TRY(bytesOf(region).status());
  std::lock_guard lock(mutex_);
  auto found = findAround(blocks_, region.ptr);
  if (found == blocks_.end() || found->second.attached) {
    return error(Code::unsupported, "{} can only share what it allocated", owner_.facts().name);
  }
  Fd fd(fcntl(found->second.fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!fd) return errnoStatus("duplicate the descriptor of fake memory");
  const auto& facts = owner_.facts();
  Share share;
  share.fds.push_back(std::move(fd));
  share.offset = static_cast<uint64_t>(region.at(0) - found->first);
  share.size = region.size;
  share.kind = facts.kind;
  share.device = facts.devices[static_cast<size_t>(found->second.index)].uuid;
  return share;
}

Result<std::unique_ptr<Reservation>> FakeMemory::reserve(size_t size, void* at) {
  return reservations_.reserve(device(0), size, at);
}

}  // namespace hmc
