#include "transport/verbs/memory.h"

#include <sys/resource.h>

#include <cerrno>

#include "base/codec.h"
#include "base/error.h"
#include "memory/backends.h"

namespace hmc::verbs {

namespace {

constexpr uint32_t kKeyMagic = 0x4b425256;  // "VRBK"

std::string lockLimit() {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : fmt::format("{} bytes", limit.rlim_cur);
}

Status explain(const Nic& nic, const Region& region, int errnum) {
  if (errnum == ENOMEM || errnum == EAGAIN) {
    return error(Code::exhausted,
                 "{} bytes cannot be locked in memory for {}: {}; this process may lock {}: raise "
                 "the limit with `ulimit -l unlimited` or in /etc/security/limits.conf",
                 region.size, nic.port().name(), errnoText(errnum), lockLimit());
  }
  return errnoStatus(fmt::format("registering {} bytes with {}", region.size, nic.port().name()),
                     errnum);
}

int remoteFlags(Rights rights) {
  if (rights.exposure == Exposure::ours) return 0;
  if (rights.access == Access::read) return IBV_ACCESS_REMOTE_READ;
  return IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
}

int accessFlags(Rights rights) {
  return IBV_ACCESS_LOCAL_WRITE | remoteFlags(rights);
}

Result<Handle<ibv_mr>> registerHost(const Nic& nic, const Region& region, Rights rights) {
  const Library& library = nic.library();
  if (region.size > nic.limits().max_mr_size) {
    return error(Code::unsupported, "{} bytes cannot be registered: {} takes at most {} at once",
                 region.size, nic.port().name(), nic.limits().max_mr_size);
  }
  ibv_mr* made = library.ibv_reg_mr(nic.pd(), region.ptr, region.size, accessFlags(rights));
  // Peers can read memory that is mapped read-only, such as a file.
  if (!made && (errno == EFAULT || errno == EACCES) && rights.access == Access::read) {
    made = library.ibv_reg_mr(nic.pd(), region.ptr, region.size, remoteFlags(rights));
  }
  if (!made) return explain(nic, region, errno);
  return Handle<ibv_mr>(made, library.ibv_dereg_mr);
}

// The kernel and the driver of the NIC have different ways to say that they know no dma-buf.
bool isUnknownCall(int errnum) {
  return errnum == EOPNOTSUPP || errnum == ENOSYS || errnum == ENOTTY || errnum == EPROTONOSUPPORT;
}

Status explainDmabuf(const Nic& nic, const Region& region, int errnum) {
  if (isUnknownCall(errnum)) {
    return error(Code::unsupported,
                 "the driver of {} takes none: {}; it needs Linux 5.12 or newer, and a NIC whose "
                 "driver has it (mlx5 does)",
                 nic.port().name(), errnoText(errnum));
  }
  Status failed = errnoStatus(
      fmt::format("registering {} bytes with {}", region.size, nic.port().name()), errnum);
  if (errnum != ENOMEM) return failed;
  return error(Code::exhausted,
               "{}; the device's PCI window may be too small for it: enable Resizable BAR in the "
               "firmware's settings",
               failed.message());
}

Result<Handle<ibv_mr>> registerByDmabuf(const Nic& nic, const Region& region, Rights rights,
                                        const Result<Share>& share) {
  HMC_TRY(share.status());
  if (share->fds.empty()) return error(Code::unsupported, "its runtime hands out no dma-buf");
  const Library& library = nic.library();
  if (!library.ibv_reg_dmabuf_mr) {
    return error(Code::unsupported,
                 "{} is older than rdma-core 34: install a newer libibverbs1 (that of Debian 12 or "
                 "Ubuntu 22.04 will do)",
                 library.handle.path());
  }
  ibv_mr* made = library.ibv_reg_dmabuf_mr(nic.pd(), share->offset, region.size,
                                           reinterpret_cast<uint64_t>(region.ptr),
                                           share->fds[0].get(), accessFlags(rights));
  if (!made) return explainDmabuf(nic, region, errno);
  return Handle<ibv_mr>(made, library.ibv_dereg_mr);
}

// Device memory: by dma-buf, then as peer memory (a kernel module translates the address).
Result<Handle<ibv_mr>> registerDevice(const Nic& nic, const Region& region, Rights rights,
                                      const Result<Share>& share, std::string& how) {
  auto byDmabuf = registerByDmabuf(nic, region, rights, share);
  how = "dma-buf";
  if (byDmabuf.ok()) return byDmabuf;
  auto asPeer = registerHost(nic, region, rights);
  how = "peer memory";
  if (asPeer.ok()) return asPeer;
  return error(Code::unsupported,
               "{} memory cannot be registered with {}, and one of two ways would be enough. "
               "dma-buf: {}. Peer memory: {}; load the accelerator's kernel module for it (NVIDIA: "
               "`modprobe nvidia-peermem` as root)",
               region.device.toString(), nic.port().name(), byDmabuf.status().message(),
               asPeer.status().message());
}

std::string encode(const Region& region, Access access, const Pinned& pinned) {
  Writer key;
  key.u32(kKeyMagic).u64(reinterpret_cast<uint64_t>(region.ptr)).u64(region.size);
  key.u8(access == Access::readWrite ? 1 : 0).u8(region.device.isHost() ? 1 : 0);
  key.u8(static_cast<uint8_t>(pinned.onNic.size()));
  for (const auto& mr : pinned.onNic) key.u32(mr->rkey);
  return key.take();
}

}  // namespace

VerbsRegistration::VerbsRegistration(const Region& where, Access allowed,
                                     std::shared_ptr<const Pinned> pinned)
    : Registration(where, allowed),
      pinned_(std::move(pinned)),
      key_(encode(where, allowed, *pinned_)) {}

Result<std::unique_ptr<RemoteMemory>> VerbsRemote::decode(std::string_view key, size_t nics,
                                                          PathTaken path) {
  Reader in(key);
  const uint32_t magic = in.u32();
  const uint64_t base = in.u64();
  const uint64_t size = in.u64();
  const uint8_t writable = in.u8();
  const uint8_t host = in.u8();
  std::vector<uint32_t> rkeys(in.u8());
  for (uint32_t& rkey : rkeys) rkey = in.u32();
  HMC_TRY(in.finish("an RDMA memory key"));
  if (magic != kKeyMagic || writable > 1 || host > 1 || rkeys.size() != nics) {
    return error(Code::invalidArgument, "these {} bytes are not a memory key of that RDMA peer",
                 key.size());
  }
  return std::unique_ptr<RemoteMemory>(
      new VerbsRemote(size, writable == 1 ? Access::readWrite : Access::read, std::move(path), base,
                      host == 1, std::move(rkeys)));
}

Result<std::unique_ptr<Registration>> MemoryTable::add(const Region& region, Access access,
                                                       Exposure exposure) {
  if (region.ptr == nullptr || region.size == 0) {
    return error(Code::invalidArgument, "a region of {} bytes at {} cannot be registered",
                 region.size, region.ptr);
  }
  HMC_ASSIGN(auto pinned, pin(region, {access, exposure}));
  return std::unique_ptr<Registration>(new VerbsRegistration(region, access, std::move(pinned)));
}

Result<std::shared_ptr<const Pinned>> MemoryTable::pin(const Region& region, Rights rights) {
  // Held while pages are locked, which may take long: two threads that register the same range must
  // not pin it twice.
  std::lock_guard lock(mutex_);
  std::erase_if(ranges_, [](const auto& entry) { return entry.second.expired(); });
  auto& known =
      ranges_[{region.ptr, region.size, region.device.kind, rights.access, rights.exposure}];
  if (auto pinned = known.lock()) return pinned;
  auto pinned = std::make_shared<Pinned>();
  pinned->how = "host memory";
  // Its descriptor is closed when all NICs have registered it: they hold on to the memory itself.
  Result<Share> share = error(Code::unsupported, "host memory needs no dma-buf");
  if (!region.device.isHost()) {
    HMC_ASSIGN(Backend * backend, findBackend(region.device));
    share = backend->share(region, ShareFor::nic);
  }
  for (const auto& nic : nics_) {
    auto registered = region.device.isHost()
                          ? registerHost(*nic, region, rights)
                          : registerDevice(*nic, region, rights, share, pinned->how);
    HMC_TRY(registered.status());
    pinned->onNic.push_back(*std::move(registered));
  }
  if (rights.exposure != Exposure::exact) known = pinned;
  return std::shared_ptr<const Pinned>(std::move(pinned));
}

Result<std::string> MemoryTable::tryDevice(Device device) {
  HMC_ASSIGN(Backend * backend, findBackend(device));
  HMC_ASSIGN(Region region, backend->allocate(device.index, kPage));
  auto how = [&]() -> Result<std::string> {
    HMC_ASSIGN(auto pinned, pin(region, {Access::readWrite, Exposure::peers}));
    return pinned->how;
  }();
  HMC_TRY(backend->release(region.ptr));
  return how;
}

}  // namespace hmc::verbs
