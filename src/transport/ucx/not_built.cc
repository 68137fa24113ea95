#include "base/error.h"
#include "transport/ucx/ucx.h"

// In place of everything else in this folder where the build found no headers.
namespace hmc::ucx {

Result<std::unique_ptr<Transport>> create(const UcxOptions&) {
  return error(Code::unsupported,
               "this HMC was built without ucp/api/ucp.h: install libucx-dev and build again");
}

}  // namespace hmc::ucx
