#pragma once

#include <string>
#include <utility>

#include "transport/transport.h"
#include "transport/ucx/address.h"
#include "transport/ucx/api.h"

namespace hmc::ucx {

// UCX's key of a peer's memory, good for one endpoint. Counted: it stays while an operation under
// way needs it, even if the UcxRemote is gone. The progress mutex guards it.
struct RemoteKey {
  const Api& api;
  const ucp_rkey_h handle;
  size_t users;

  static void release(RemoteKey*& key) {
    RemoteKey* const used = std::exchange(key, nullptr);
    if (!used || --used->users > 0) return;
    used->api.ucp_rkey_destroy(used->handle);
    delete used;
  }
};

class UcxRemote;

// Owns the keys of an endpoint's worker, which must go before the worker does.
class RemoteKeys {
 public:
  virtual void forget(const UcxRemote& remote) = 0;

 protected:
  ~RemoteKeys() = default;
};

// A peer's memory, as one link reaches it.
class UcxRemote final : public RemoteMemory {
 public:
  UcxRemote(RemoteKeys& keys, Key from, PathTaken path)
      : RemoteMemory(from.size, from.access, {}, std::move(path)),
        region(from.region),
        address(from.address),
        packed(std::move(from.hardware)),
        keys_(keys) {}
  ~UcxRemote() override { keys_.forget(*this); }

  const uint64_t region;
  const uint64_t address;
  // For HardwareOps: UCX's key as it came, empty where only messages reach the memory; and the key
  // of the current endpoint.
  mutable std::string packed;
  mutable RemoteKey* key = nullptr;

 private:
  RemoteKeys& keys_;
};

}  // namespace hmc::ucx
