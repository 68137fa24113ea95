#pragma once

#include <unistd.h>

#include <string>

#include "base/random.h"
#include "memory/device_pins.h"
#include "transport/ipc/key.h"
#include "transport/ipc/shared.h"
#include "transport/transport.h"

namespace hmc::ipc {

class IpcRegistration final : public Registration {
 public:
  IpcRegistration(Shared& shared, const Region& what, Access how)
      : Registration(what, how), shared_(shared), nonce_(randomBytes(kNonceSize)) {}
  ~IpcRegistration() override {
    for (const std::string& token : offered_) shared_.fds.withdraw(token);
    if (number_ != 0) shared_.exports.remove(number_);
    // Whoever imports the key from now on finds that this is not it.
    explicit_bzero(nonce_.data(), nonce_.size());
  }

  const std::string& key() const override { return key_; }
  // Host memory that devices of this process copy straight from and into.
  void pinForDevices() const { pins_.pinForLoaded(region); }

  // Collects the paths to this memory; ok unless one of them should be there and is not. A device's
  // memory may have none: our own transfers can still use it.
  Status open(Backend& backend) {
    Key key;
    key.access = access;
    key.device = region.device;
    key.size = region.size;
    key.exchange = shared_.fds.name();
    key.process = processNonce();
    key.processVm = region.device.isHost() && shared_.options.allowProcessVm;
    key.pid = getpid();
    key.address = reinterpret_cast<uintptr_t>(region.ptr);
    key.nonceAddress = reinterpret_cast<uintptr_t>(nonce_.data());
    key.nonce = nonce_;
    if (shared_.options.allowMapping) HMC_TRY(offerMapping(backend, key));
    // Every peer that gets in can map the host memory that we share. A device's memory that a peer
    // cannot map is staged by the engine.
    if (offered_.empty() && region.device.isHost()) {
      shared_.service.start();
      key.pageToken = shared_.pageToken;
      key.region = number_ = shared_.exports.add(region, access);
    }
    key_ = encode(key);
    return Status();
  }

 private:
  Status offerMapping(Backend& backend, Key& key) {
    auto share = backend.share(region, ShareFor::process);
    if (!share.ok()) {
      key.notShared = share.status().message();
      return Status();
    }
    for (const Fd& fd : share->fds) {
      HMC_ASSIGN(std::string token, shared_.fds.offer(fd.get()));
      offered_.push_back(std::move(token));
    }
    key.shareTokens = offered_;
    key.shareHandle = share->handle;
    key.shareOffset = share->offset;
    key.uuid = share->device;
    return Status();
  }

  Shared& shared_;
  mutable DevicePins pins_;
  std::string nonce_;  // peers read it here, through the kernel, to know that we are who they mean
  std::vector<std::string> offered_;  // tokens of descriptors
  uint64_t number_ = 0;
  std::string key_;
};

}  // namespace hmc::ipc
