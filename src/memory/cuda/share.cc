#include "base/codec.h"
#include "base/error.h"
#include "memory/cuda/memory.h"

// Memory that another process or a NIC reaches.
namespace hmc::cuda {

namespace {

// How another process opens it; the first byte of Share::handle.
enum class How : uint8_t {
  descriptor = 1,  // of physical memory; for each piece u64: how many bytes that is
  fabric = 2,      // the same, and behind each number a handle instead of the descriptor
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

// A piece of what a peer shared.
struct Piece {
  uint64_t size;
  std::string_view fabric;  // empty when a descriptor does it
};

// Refused unless all numbers of the share make sense together.
Result<std::vector<Piece>> piecesOf(const Share& share, How how, Reader& reader, size_t granule) {
  std::vector<Piece> pieces;
  uint64_t total = 0;
  bool sane = share.size > 0 && (how == How::descriptor || how == How::fabric);
  while (sane && reader.left() > 0) {
    const uint64_t size = reader.u64();
    pieces.push_back({size, reader.raw(how == How::fabric ? sizeof(CuFabricHandle) : 0)});
    sane = !reader.failed() && size % granule == 0 && fits(total, size, INT64_MAX);
    total += size;
  }
  const size_t descriptors = how == How::descriptor ? pieces.size() : 0;
  if (!sane || pieces.size() > Share::kMostPieces || share.fds.size() != descriptors ||
      !fits(share.offset, share.size, total)) {
    return error(Code::invalidArgument,
                 "a share of {} bytes at offset {} of {} bytes of CUDA memory, with {} descriptors "
                 "for {} pieces, makes no sense",
                 share.size, share.offset, total, share.fds.size(), pieces.size());
  }
  return pieces;
}

Result<Physical> importPhysical(const Driver& driver, void* shareable, int type) {
  CuAllocation handle = 0;
  HMC_CUDA(driver, cuMemImportFromShareableHandle, &handle, shareable, type);
  return Physical(driver, handle);
}

Result<Physical> importDescriptor(const Driver& driver, const Fd& fd) {
  auto shareable = reinterpret_cast<void*>(static_cast<uintptr_t>(fd.get()));  // NOLINT
  return importPhysical(driver, shareable, kHandleDescriptor);
}

Result<Physical> importFabric(const Driver& driver, std::string_view bytes) {
  HMC_ASSIGN(auto handle, handleIn<CuFabricHandle>(bytes));
  return importPhysical(driver, &handle, kHandleFabric);
}

// Adds the memory that is mapped at `base` to a share.
Status exportPhysical(const Driver& driver, CuPointer base, How how, Share& share, Writer& handle) {
  CuAllocation retained = 0;
  HMC_CUDA(driver, cuMemRetainAllocationHandle, &retained, pointer(base));
  const Physical physical(driver, retained);
  if (how == How::fabric) {
    CuFabricHandle fabric;
    HMC_CUDA(driver, cuMemExportToShareableHandle, &fabric, retained, kHandleFabric, 0);
    handle.raw(bytesOf(fabric));
    return Status();
  }
  int fd = -1;
  HMC_CUDA(driver, cuMemExportToShareableHandle, &fd, retained, kHandleDescriptor, 0);
  share.fds.emplace_back(fd);
  return Status();
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
  share.fds.emplace_back(fd);
  share.offset = reinterpret_cast<uintptr_t>(region.ptr) - first;
  return share;
}

Result<Share> Memory::shareLegacy(const Region& region, const char* base) {
  CuIpcMemHandle handle;
  HMC_CUDA(driver_, cuIpcGetMemHandle, &handle, address(base));
  Share share;
  share.handle = Writer().u8(static_cast<uint8_t>(How::legacy)).raw(bytesOf(handle)).take();
  share.offset = static_cast<uint64_t>(region.at(0) - base);
  return share;
}

Result<std::vector<Memory::MappedChunk>> Memory::chunksUnder(const Region& region) const {
  std::vector<MappedChunk> chunks;
  const CuPointer end = address(region.at(region.size));
  for (CuPointer next = address(region.ptr); next < end;) {
    MappedChunk chunk;
    int attributes[] = {kAttributeMappingBase, kAttributeMappingSize, kAttributeHandleTypes};
    void* values[] = {&chunk.base, &chunk.size, &chunk.handleTypes};
    HMC_CUDA(driver_, cuPointerGetAttributes, std::size(attributes), attributes, values, next);
    if (chunk.size == 0) {
      return error(Code::invalidArgument, "of the {} bytes at {} those from {} on are not mapped",
                   region.size, region.ptr, static_cast<const void*>(pointer(next)));
    }
    if (chunks.size() == Share::kMostPieces) {
      return error(
          Code::unsupported,
          "the {} bytes at {} are made of more than {} pieces, the first of {} bytes, and "
          "each costs a descriptor: register less of it at a time, or allocate it with the "
          "Node, in one piece",
          region.size, region.ptr, Share::kMostPieces, chunks.front().size);
    }
    chunks.push_back(chunk);
    next = chunk.base + chunk.size;
  }
  return chunks;
}

// What we allocated, and what torch, cupy and everybody else did.
Result<Share> Memory::shareForProcess(const Region& region) {
  HMC_ASSIGN(const Known known, ask(region.ptr));
  if (known.legacyIpc) return shareLegacy(region, known.base);
  uint64_t types = known.handleTypes & (kHandleDescriptor | kHandleFabric);
  std::vector<MappedChunk> chunks;
  if (types != 0) {
    HMC_ASSIGN(chunks, chunksUnder(region));
  }
  for (const MappedChunk& chunk : chunks) types &= chunk.handleTypes;
  if (types == 0) {
    return error(Code::unsupported,
                 "the memory at {} was allocated in a way that no other process can open "
                 "(cudaMallocAsync is such, and torch's expandable segments with "
                 "TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC=0); allocate it with cudaMalloc, with the "
                 "Node, or without that variable",
                 region.ptr);
  }
  const How how = types & kHandleDescriptor ? How::descriptor : How::fabric;
  Share share;
  share.offset = address(region.ptr) - chunks.front().base;
  Writer handle;
  handle.u8(static_cast<uint8_t>(how));
  for (const MappedChunk& chunk : chunks) {
    handle.u64(chunk.size);
    HMC_TRY(exportPhysical(driver_, chunk.base, how, share, handle));
  }
  share.handle = handle.take();
  return share;
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
  HMC_ASSIGN(Share share,
             purpose == ShareFor::nic ? shareForNic(region, device) : shareForProcess(region));
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
  auto known = ask(block.base);
  block.mapped = known.ok() ? known->size : 0;
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
  HMC_ASSIGN(const size_t granule, granularity());
  HMC_ASSIGN(const auto pieces, piecesOf(share, how, reader, granule));
  if (at && share.offset != 0) {
    return error(Code::unsupported,
                 "memory at offset {} of its allocation cannot be mapped at a place of our choice: "
                 "only what begins with its allocation can",
                 share.offset);
  }
  Block block;
  block.attached = true;
  for (size_t i = 0; i < pieces.size(); ++i) {
    HMC_ASSIGN(Physical physical, pieces[i].fabric.empty()
                                      ? importDescriptor(driver_, share.fds[i])
                                      : importFabric(driver_, pieces[i].fabric));
    block.chunks.push_back({std::move(physical), pieces[i].size});
    block.mapped += pieces[i].size;
  }
  block.region = {nullptr, share.size, {DeviceKind::cuda, index}};
  HMC_TRY(map(block, at));
  block.region.ptr = block.base + share.offset;
  return add(std::move(block));
}

}  // namespace hmc::cuda
