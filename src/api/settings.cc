#include "api/settings.h"

#include "base/environment.h"
#include "base/error.h"

namespace hmc {

Result<Settings> Settings::fromEnvironment() {
  HMC_TRY(checkValuesOf(Variable::Reader::documented));
  Settings settings;
  HMC_ASSIGN(settings.transfer, millisecondsOf(variable::kTimeout));
  HMC_ASSIGN(settings.receive, millisecondsOf(variable::kReceiveTimeout));
  HMC_ASSIGN(settings.connect, millisecondsOf(variable::kConnectTimeout));
  settings.strict = valueOf(variable::kStrictTransport) == "1";
  settings.node.insecure = true;  // their manuals know no secret
  return settings;
}

}  // namespace hmc
