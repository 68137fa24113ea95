#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <string>

#include "base/error.h"
#include "base/random.h"
#include "memory/device_pins.h"
#include "transport/ipc/key.h"
#include "transport/ipc/shared.h"
#include "transport/transport.h"

namespace hmc::ipc {

class IpcRegistration final : public Registration {
 public:
  IpcRegistration(Shared& shared, Backend& backend, const Region& what, Access how,
                  Exposure exposure)
      : Registration(what, how), shared_(shared), backend_(backend), exposure_(exposure) {}
  ~IpcRegistration() override {
    if (!token_.empty()) shared_.offered.remove(token_);
    if (number_ != 0) shared_.exports.remove(number_);
    // Whoever opens the memory from now on finds that this is not it.
    explicit_bzero(nonce_.data(), nonce_.size());
  }

  // Made when a peer first needs it: exporting a device's memory takes longer than a small put, and
  // the memory of most transfers is never anybody else's.
  const std::string& key() const override {
    std::call_once(once_, [this] {
      token_ = shared_.offered.add(describe());
      key_ = encode(Key{token_});
    });
    return key_;
  }
  // Host memory that devices of this process copy straight from and into.
  void pinForDevices() const { pins_.pinForLoaded(region); }

 private:
  // All paths to this memory. A device's memory may have none: our own transfers can still use it.
  Offered describe() const {
    Offered offered;
    Description& what = offered.what;
    what.access = access;
    what.device = region.device;
    what.size = region.size;
    what.processVm = region.device.isHost() && shared_.options.allowProcessVm;
    what.address = reinterpret_cast<uintptr_t>(region.ptr);
    nonce_ = randomBytes(kNonceSize);
    what.nonceAddress = reinterpret_cast<uintptr_t>(nonce_.data());
    what.nonce = nonce_;
    if (shared_.options.allowMapping) {
      Status mapping = offerMapping(offered);
      if (!mapping.ok()) what.notShared = mapping.message();
    }
    // Every peer that gets in can map the host memory that we share. A device's memory that a peer
    // cannot map is staged by the engine.
    if (offered.share.empty() && region.device.isHost()) {
      const Status served = shared_.service.start();
      if (!served.ok()) logWarn("peers cannot use a ring of ipc: {}", served.message());
      what.page = served.ok();
      if (what.page) what.region = number_ = shared_.exports.add(region, access);
    }
    return offered;
  }

  Status offerMapping(Offered& offered) const {
    HMC_ASSIGN(Share share, backend_.share(region, ShareFor::process));
    if (exposure_ == Exposure::exact && region.device.isHost()) HMC_TRY(checkWholePages(share));
    if (access == Access::read && region.device.isHost()) {
      for (Fd& fd : share.fds) {
        HMC_ASSIGN(fd, readOnly(fd));
      }
    }
    offered.share = std::move(share.fds);
    offered.what.shareFds = static_cast<uint32_t>(offered.share.size());
    offered.what.shareHandle = share.handle;
    offered.what.shareOffset = share.offset;
    offered.what.uuid = share.device;
    return Status();
  }

  // What is mapped, is mapped in whole pages: others than the region's must not be in them. The
  // rest of the last page of an allocation is nobody's.
  Status checkWholePages(const Share& share) const {
    struct stat file {};
    if (fstat(share.fds[0].get(), &file) != 0) return errnoStatus("look at shared memory");
    const auto page = static_cast<uint64_t>(std::max<long>(file.st_blksize, sysconf(_SC_PAGESIZE)));
    HMC_ASSIGN(const Region whole, backend_.locate(region.ptr));
    const bool toTheEnd = region.at(region.size) == whole.at(whole.size);
    if (share.offset % page == 0 && (toTheEnd || (share.offset + share.size) % page == 0))
      return Status();
    return error(
        Code::unsupported,
        "{} bytes at offset {} share pages of {} bytes with others, and their owner granted "
        "no more than them",
        share.size, share.offset, page);
  }

  // The same memory, for who cannot map it for writing.
  static Result<Fd> readOnly(const Fd& fd) {
    Fd again(open(fmt::format("/proc/self/fd/{}", fd.get()).c_str(), O_RDONLY | O_CLOEXEC));
    if (!again) return errnoStatus("open shared memory for reading only");
    return again;
  }

  Shared& shared_;
  Backend& backend_;
  const Exposure exposure_;
  mutable DevicePins pins_;
  mutable std::once_flag once_;  // guards the making of what follows
  mutable std::string key_;
  // Peers read it here, through the kernel, to know that we are who they mean.
  mutable std::string nonce_;
  mutable std::string token_;  // of key_
  mutable uint64_t number_ = 0;
};

}  // namespace hmc::ipc
