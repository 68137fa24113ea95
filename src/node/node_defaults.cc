#include "node/node_defaults.h"

#include <algorithm>

#include "base/environment.h"
#include "base/error.h"
#include "transfer/tracer.h"

namespace hmc {

Result<NodeOptions> withEnvironment(NodeOptions options) {
  HMC_TRY(checkValuesOf(Variable::Reader::nodes));
  if (options.transports.empty()) options.transports = listOf(variable::kTransports);
  if (options.dataPorts.empty()) options.dataPorts = valueOf(variable::kDataPorts).value_or("");
  if (!options.integrity) options.integrity = valueOf(variable::kIntegrity) == "true";
  if (!options.trace && valueOf(variable::kTrace) == "stderr") options.trace = traceToStderr();
  if (!options.lease) {
    HMC_ASSIGN(options.lease, millisecondsOf(variable::kLease));
    // A heartbeat of the usual length would come too late for a short lease.
    options.heartbeat = std::min(options.heartbeat, *options.lease / 5);
  }
  return options;
}

}  // namespace hmc
