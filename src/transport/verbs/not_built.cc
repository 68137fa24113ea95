#include "base/error.h"
#include "transport/verbs/verbs.h"

// In place of everything else in this folder where the build found no headers.
namespace hmc::verbs {

Result<std::unique_ptr<Transport>> create(const VerbsOptions&) {
  return error(Code::unsupported,
               "this HMC was built without infiniband/verbs.h: install libibverbs-dev and build "
               "again");
}

}  // namespace hmc::verbs
