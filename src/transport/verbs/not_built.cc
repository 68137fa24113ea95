#include "base/error.h"
#include "transport/rdma_report.h"
#include "transport/verbs/verbs.h"

// In place of everything else in this folder where the build found no headers.
namespace hmc::verbs {

Result<std::unique_ptr<Transport>> create(const VerbsOptions&) {
  return error(Code::unsupported,
               "this HMC was built without infiniband/verbs.h: install libibverbs-dev and build "
               "again");
}

Report report() {
  Report report;
  report.problem = "this HMC was built without infiniband/verbs.h";
  report.fix = "apt install libibverbs-dev, then build again";
  return report;
}

}  // namespace hmc::verbs
