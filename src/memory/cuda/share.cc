#include "base/codec.h"
#include "base/error.h"
#include "memory/cuda/memory.h"

// Memory that another process or a NIC reaches.
namespace hmc::cuda {

namespace {

// How another process opens it; the first byte of Share::handle.
enum class How : uint8_t {
  descriptor = 1,  // of physical memory; u64: how many bytes that is
  fabric = 2,      // the same by a handle, which follows
  legacy = 3,      // cuIpcOpenMemHandle(); the handle follows
};

template <class Handle>
std::string_view bytesOf(const Handle& handle) {
  return {reinterpret_cast<const char*>(&handle), sizeof(handle)};
}

template <class Handle>
Result<Handle> handleIn(std::string_view bytes) {
  Handle handle{};
  if (bytes.size() != sizeof(handle)) {
    return error(Code::invalidArgument, "a handle of CUDA has {} bytes, not {}", sizeof(handle),
                 bytes.size());
  }
  std::memcpy(&handle, bytes.data(), sizeof(handle));
  return handle;
}

constexpr uintptr_t kPage = 4096;

}  // namespace

Result<Share> Memory::shareForNic(const Region& region, const CudaDevice& device) {
  if (!device.has(kDmaBuf)) {
    return error(Code::unsupported,
                 "the driver of cuda:{} exports no dma-buf: it needs the open kernel modules and "
                 "Linux 5.12",
                 device.index());
  }
  const auto first = reinterpret_cast<uintptr_t>(region.ptr) / kPage * kPage;
  const uintptr_t end = reinterpret_cast<uintptr_t>(region.ptr) + region.size;
  const size_t size = (end - first + kPage - 1) / kPage * kPage;
  int fd = -1;
  Status exported =
      driver_.check(driver_.cuMemGetHandleForAddressRange(&fd, first, size, kRangeDmaBuf, 0),
                    "cuMemGetHandleForAddressRange");
  if (!exported.ok()) return error(Code::unsupported, "no dma-buf: {}", exported.message());
  Share share;
  share.fd = Fd(fd);
  share.offset = reinterpret_cast<uintptr_t>(region.ptr) - first;
  return share;
}

Status Memory::shareDescriptor(const Region& region, CuAllocation handle, const char* base,
                               size_t mapped, Share& share) {
  int fd = -1;
  HMC_CUDA(driver_, cuMemExportToShareableHandle, &fd, handle, kHandleDescriptor, 0);
  share.fd = Fd(fd);
  share.handle = Writer().u8(static_cast<uint8_t>(How::descriptor)).u64(mapped).take();
  share.offset = static_cast<uint64_t>(region.at(0) - base);
  return Status();
}

// Memory of torch, cupy and everybody else.
Status Memory::shareOthers(const Region& region, Share& share) {
  const Known known = ask(region.ptr);
  if (known.legacyIpc) {
    CuIpcMemHandle handle;
    HMC_CUDA(driver_, cuIpcGetMemHandle, &handle, address(known.base));
    share.handle = Writer().u8(static_cast<uint8_t>(How::legacy)).raw(bytesOf(handle)).take();
    share.offset = static_cast<uint64_t>(region.at(0) - known.base);
    return Status();
  }
  if ((known.handleTypes & (kHandleDescriptor | kHandleFabric)) == 0) {
    return error(Code::unsupported,
                 "the memory at {} was allocated in a way that no other process can open "
                 "(cudaMallocAsync and managed memory are such); allocate it with cudaMalloc or "
                 "with the Node",
                 region.ptr);
  }
  CuPointer base = 0;
  size_t mapped = 0;
  int attributes[] = {kAttributeMappingBase, kAttributeMappingSize};
  void* values[] = {&base, &mapped};
  HMC_CUDA(driver_, cuPointerGetAttributes, 2, attributes, values, address(region.ptr));
  if (!fits(address(region.ptr) - base, region.size, mapped)) {
    return error(Code::unsupported,
                 "the {} bytes at {} lie in several pieces of memory, the first of {} bytes; only "
                 "one piece can be opened by another process",
                 region.size, region.ptr, mapped);
  }
  CuAllocation handle = 0;
  HMC_CUDA(driver_, cuMemRetainAllocationHandle, &handle, region.ptr);
  const Physical physical(driver_, handle);
  if (known.handleTypes & kHandleDescriptor) {
    return shareDescriptor(region, handle, pointer(base), mapped, share);
  }
  CuFabricHandle fabric;
  HMC_CUDA(driver_, cuMemExportToShareableHandle, &fabric, handle, kHandleFabric, 0);
  share.handle =
      Writer().u8(static_cast<uint8_t>(How::fabric)).u64(mapped).raw(bytesOf(fabric)).take();
  share.offset = address(region.ptr) - base;
  return Status();
}

Result<Share> Memory::share(const Region& region, ShareFor purpose) {
  HMC_ASSIGN(const Region whole, locate(region.ptr));
  const auto offset = static_cast<uint64_t>(region.at(0) - whole.at(0));
  if (!fits(offset, region.size, whole.size)) {
    return error(Code::outOfRange, "{} bytes at offset {} would pass the end of {} bytes on {}",
                 region.size, offset, whole.size, whole.device.toString());
  }
  CudaDevice& device = devices_[static_cast<size_t>(whole.device.index)];
  HMC_ASSIGN(CuContext context, device.context());
  Current current(driver_, context);
  HMC_TRY(current.status());
  Share share;
  if (purpose == ShareFor::nic) {
    HMC_ASSIGN(share, shareForNic(region, device));
  } else {
    std::unique_lock lock(mutex_);
    auto found = around(region.ptr);
    if (found != blocks_.end() && found->second.physical) {
      const Block& block = found->second;
      HMC_TRY(shareDescriptor(region, block.physical->get(), block.base, block.mapped, share));
    } else {
      lock.unlock();
      HMC_TRY(shareOthers(region, share));
    }
  }
  share.size = region.size;
  share.kind = DeviceKind::cuda;
  share.device = owner_.facts().devices[static_cast<size_t>(device.index())].uuid;
  share.purpose = purpose;
  return share;
}

Result<Region> Memory::attachLegacy(const Share& share, std::string_view bytes,
                                    CudaDevice& device) {
  HMC_ASSIGN(const auto handle, handleIn<CuIpcMemHandle>(bytes));
  CuPointer base = 0;
  HMC_CUDA(driver_, cuIpcOpenMemHandle_v2, &base, handle, kIpcLazyPeerAccess);
  Block block;
  block.base = pointer(base);
  block.mapped = ask(block.base).size;
  if (share.size == 0 || !fits(share.offset, share.size, block.mapped)) {
    (void)unmap(block);
    return error(Code::outOfRange, "{} bytes at offset {} would pass the end of a peer's {} bytes",
                 share.size, share.offset, block.mapped);
  }
  block.region = {block.base + share.offset, share.size, {DeviceKind::cuda, device.index()}};
  block.attached = true;
  return add(std::move(block));
}

Result<Region> Memory::attach(const Share& share, int index, void* at) {
  CudaDevice& device = devices_[static_cast<size_t>(index)];
  HMC_ASSIGN(CuContext context, device.context());
  Current current(driver_, context);
  HMC_TRY(current.status());
  Reader reader(share.handle);
  const How how{reader.u8()};
  if (how == How::legacy) {
    if (!at) return attachLegacy(share, reader.raw(reader.left()), device);
    return error(Code::unsupported,
                 "memory that its owner allocated with cudaMalloc cannot be mapped at a place of "
                 "our choice; let its Node allocate it");
  }
  Block block;
  block.mapped = reader.u64();
  block.attached = true;
  HMC_ASSIGN(const size_t granule, granularity());
  if (block.mapped % granule != 0 || share.size == 0 ||
      !fits(share.offset, share.size, block.mapped)) {
    return error(Code::invalidArgument,
                 "a share of {} bytes at offset {} of {} bytes of CUDA memory makes no sense",
                 share.size, share.offset, block.mapped);
  }
  if (at && share.offset != 0) {
    return error(Code::unsupported,
                 "memory at offset {} of its allocation cannot be mapped at a place of our choice: "
                 "only what begins with its allocation can",
                 share.offset);
  }
  CuAllocation handle = 0;
  if (how == How::descriptor && share.fd) {
    auto fd = reinterpret_cast<void*>(static_cast<uintptr_t>(share.fd.get()));  // NOLINT
    HMC_CUDA(driver_, cuMemImportFromShareableHandle, &handle, fd, kHandleDescriptor);
  } else if (how == How::fabric) {
    HMC_ASSIGN(auto fabric, handleIn<CuFabricHandle>(reader.raw(reader.left())));
    HMC_CUDA(driver_, cuMemImportFromShareableHandle, &handle, &fabric, kHandleFabric);
  } else {
    return error(Code::invalidArgument, "a share of CUDA memory has neither descriptor nor handle");
  }
  block.physical.emplace(driver_, handle);
  block.region = {nullptr, share.size, {DeviceKind::cuda, index}};
  HMC_TRY(map(block, at));
  block.region.ptr = block.base + share.offset;
  return add(std::move(block));
}

}  // namespace hmc::cuda
