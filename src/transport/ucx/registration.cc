#include "transport/ucx/registration.h"

#include "base/error.h"

namespace hmc::ucx {

Result<std::unique_ptr<Registration>> UcxRegistration::create(Areas& areas, const Region& region,
                                                              Access access) {
  if (region.ptr == nullptr || region.size == 0) {
    return error(Code::invalidArgument, "a region of {} bytes at {} cannot be registered",
                 region.size, region.ptr);
  }
  return std::unique_ptr<Registration>(new UcxRegistration(areas, region, access));
}

}  // namespace hmc::ucx
