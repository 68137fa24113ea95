#pragma once

#include <string>
#include <utility>

#include "transport/transport.h"
#include "transport/ucx/address.h"
#include "transport/ucx/api.h"

namespace hmc::ucx {

// UCX's key of a peer's memory, good for one endpoint. It stays while an operation under way needs
// it, whatever becomes of the UcxRemote.
struct RemoteKey {
  const ucp_rkey_h handle;
  size_t users;
};

class UcxRemote;

// Who keeps the keys of an endpoint's worker, which must go before it does.
class RemoteKeys {
 public:
  virtual void forget(const UcxRemote& remote) = 0;

 protected:
  ~RemoteKeys() = default;
};

// A peer's memory, as one link reaches it.
class UcxRemote final : public RemoteMemory {
 public:
  UcxRemote(RemoteKeys& keys, Key from, PathTaken words)
      : RemoteMemory(from.size, from.access, {}, std::move(words)),
        area(from.area),
        address(from.address),
        packed(std::move(from.hardware)),
        keys_(keys) {}
  ~UcxRemote() override { keys_.forget(*this); }

  const uint64_t area;
  const uint64_t address;
  // The keeper's: UCX's key as it came, empty where only messages reach the memory; and for the
  // endpoint that there is now.
  mutable std::string packed;
  mutable RemoteKey* key = nullptr;

 private:
  RemoteKeys& keys_;
};

}  // namespace hmc::ucx
