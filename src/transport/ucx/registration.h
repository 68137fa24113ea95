#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "transport/transport.h"
#include "transport/ucx/address.h"
#include "transport/ucx/worker.h"

namespace hmc::ucx {

// Memory of ours that UCX knows.
class UcxRegistration final : public Registration {
 public:
  // Must not outlive `context`. `unsupported` for a kind of memory that this UCX does not reach.
  static Result<std::unique_ptr<Registration>> create(Context& context, const Region& region,
                                                      Access access);
  ~UcxRegistration() override;

  const std::string& key() const override { return key_; }
  ucp_mem_h handle() const { return handle_; }

 private:
  UcxRegistration(Context& context, const Region& what, Access how, ucp_mem_h handle)
      : Registration(what, how), context_(context), handle_(handle) {}
  Status makeKey();

  Context& context_;
  const ucp_mem_h handle_;
  std::string key_;
};

// A peer's memory, as one endpoint reaches it. `mutex` guards that endpoint's worker.
class UcxRemote final : public RemoteMemory {
 public:
  UcxRemote(const Api& api, std::mutex& mutex, const Key& key, ucp_rkey_h unpacked, PathWords words)
      : RemoteMemory(key.size, key.access, {}, std::move(words)),
        address(key.address),
        handle(unpacked),
        api_(api),
        mutex_(mutex) {}
  ~UcxRemote() override {
    std::lock_guard lock(mutex_);
    api_.ucp_rkey_destroy(handle);
  }

  const uint64_t address;
  const ucp_rkey_h handle;

 private:
  const Api& api_;
  std::mutex& mutex_;
};

}  // namespace hmc::ucx
