#pragma once

#include <memory>
#include <string>

#include "transport/exports.h"
#include "transport/ucx/address.h"
#include "transport/ucx/worker.h"

namespace hmc::ucx {

// Memory of ours that peers reach by messages, and by hardware where UCX can register it.
class UcxRegistration final : public Registration {
 public:
  // Must not outlive `context` and `exports`.
  static Result<std::unique_ptr<Registration>> create(Context& context, Exports& exports,
                                                      const Region& region, Access access);
  ~UcxRegistration() override;

  const std::string& key() const override { return key_; }

 private:
  UcxRegistration(Context& context, Exports& exports, const Region& what, Access how)
      : Registration(what, how),
        context_(context),
        exports_(exports),
        id_(exports.add(what, how)) {}
  Result<std::string> openToHardware();

  Context& context_;
  Exports& exports_;
  const uint64_t id_;
  ucp_mem_h handle_ = nullptr;  // none where hardware does not reach it
  std::string key_;
};

}  // namespace hmc::ucx
