#pragma once

#include <memory>
#include <string>

#include "transport/transport.h"
#include "transport/ucx/address.h"
#include "transport/ucx/areas.h"
#include "transport/ucx/worker.h"

namespace hmc::ucx {

// Memory of ours that peers reach by messages, and by hardware where UCX can register it.
class UcxRegistration final : public Registration {
 public:
  // Must not outlive `context` and `areas`.
  static Result<std::unique_ptr<Registration>> create(Context& context, Areas& areas,
                                                      const Region& region, Access access);
  ~UcxRegistration() override;

  const std::string& key() const override { return key_; }

 private:
  UcxRegistration(Context& context, Areas& areas, const Region& what, Access how)
      : Registration(what, how), context_(context), areas_(areas), area_(areas.add(what, how)) {}
  Result<std::string> openToHardware();

  Context& context_;
  Areas& areas_;
  const uint64_t area_;
  ucp_mem_h handle_ = nullptr;  // none where hardware does not reach it
  std::string key_;
};

}  // namespace hmc::ucx
