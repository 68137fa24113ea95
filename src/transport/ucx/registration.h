#pragma once

#include <memory>
#include <string>

#include "transport/transport.h"
#include "transport/ucx/address.h"
#include "transport/ucx/areas.h"
#include "transport/ucx/worker.h"

namespace hmc::ucx {

// Memory of ours that messages reach, and hardware where UCX can register it.
class UcxRegistration final : public Registration {
 public:
  // Must not outlive `context` and `areas`.
  static Result<std::unique_ptr<Registration>> create(Context& context, Areas& areas,
                                                      const Region& region, Access access);
  ~UcxRegistration() override;

  const std::string& key() const override { return key_; }
  ucp_mem_h handle() const { return handle_; }

 private:
  UcxRegistration(Context& context, Areas& areas, const Region& what, Access how)
      : Registration(what, how), context_(context), areas_(areas), area_(areas.add(what, how)) {}
  Status map(ucs_memory_type_t type);
  Result<std::string> pack() const;

  Context& context_;
  Areas& areas_;
  const uint64_t area_;
  ucp_mem_h handle_ = nullptr;  // none where UCX does not reach this kind of memory
  std::string key_;
};

class UcxRemote;

// Who keeps the keys of an endpoint's worker, which must go before it does.
class RemoteKeys {
 public:
  virtual void forget(UcxRemote& remote) = 0;

 protected:
  ~RemoteKeys() = default;
};

// A peer's memory, as one endpoint reaches it. Used by Outgoing, and while it is open.
class UcxRemote final : public RemoteMemory {
 public:
  UcxRemote(RemoteKeys& keys, const Key& key, ucp_rkey_h unpacked, PathWords words)
      : RemoteMemory(key.size, key.access, {}, std::move(words)),
        area(key.area),
        address(key.address),
        handle(unpacked),
        keys_(keys) {}
  ~UcxRemote() override { keys_.forget(*this); }

  const uint64_t area;
  const uint64_t address;
  const ucp_rkey_h handle;  // none: by messages

 private:
  RemoteKeys& keys_;
};

}  // namespace hmc::ucx
