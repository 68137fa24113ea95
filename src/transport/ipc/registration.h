#pragma once

#include <unistd.h>

#include <mutex>
#include <string>
#include <vector>

#include "base/random.h"
#include "memory/device_pins.h"
#include "transport/ipc/key.h"
#include "transport/ipc/shared.h"
#include "transport/transport.h"

namespace hmc::ipc {

class IpcRegistration final : public Registration {
 public:
  IpcRegistration(Shared& shared, Backend& backend, const Region& what, Access how)
      : Registration(what, how), shared_(shared), backend_(backend) {}
  ~IpcRegistration() override {
    for (const std::string& token : offered_) shared_.fds.withdraw(token);
    if (number_ != 0) shared_.exports.remove(number_);
    // Whoever imports the key from now on finds that this is not it.
    explicit_bzero(nonce_.data(), nonce_.size());
  }

  // Made when a peer first needs it: exporting a device's memory takes longer than a small put, and
  // the memory of most transfers is never anybody else's.
  const std::string& key() const override {
    std::call_once(once_, [this] { key_ = encode(describe()); });
    return key_;
  }
  // Host memory that devices of this process copy straight from and into.
  void pinForDevices() const { pins_.pinForLoaded(region); }

 private:
  // All paths to this memory. A device's memory may have none: our own transfers can still use it.
  Key describe() const {
    Key key;
    key.access = access;
    key.device = region.device;
    key.size = region.size;
    key.exchange = shared_.fds.name();
    key.process = processNonce();
    key.processVm = region.device.isHost() && shared_.options.allowProcessVm;
    key.pid = getpid();
    key.address = reinterpret_cast<uintptr_t>(region.ptr);
    nonce_ = randomBytes(kNonceSize);
    key.nonceAddress = reinterpret_cast<uintptr_t>(nonce_.data());
    key.nonce = nonce_;
    if (shared_.options.allowMapping) {
      Status offered = offerMapping(key);
      if (!offered.ok()) key.notShared = offered.message();
    }
    // Every peer that gets in can map the host memory that we share. A device's memory that a peer
    // cannot map is staged by the engine.
    if (key.shareTokens.empty() && region.device.isHost()) {
      shared_.service.start();
      key.pageToken = shared_.pageToken;
      key.region = number_ = shared_.exports.add(region, access);
    }
    return key;
  }

  Status offerMapping(Key& key) const {
    HMC_ASSIGN(const Share share, backend_.share(region, ShareFor::process));
    for (const Fd& fd : share.fds) {
      HMC_ASSIGN(std::string token, shared_.fds.offer(fd.get()));
      offered_.push_back(std::move(token));
    }
    key.shareTokens = offered_;
    key.shareHandle = share.handle;
    key.shareOffset = share.offset;
    key.uuid = share.device;
    return Status();
  }

  Shared& shared_;
  Backend& backend_;
  mutable DevicePins pins_;
  mutable std::once_flag once_;  // guards the making of what follows
  mutable std::string key_;
  // Peers read it here, through the kernel, to know that we are who they mean.
  mutable std::string nonce_;
  mutable std::vector<std::string> offered_;  // tokens of descriptors
  mutable uint64_t number_ = 0;
};

}  // namespace hmc::ipc
