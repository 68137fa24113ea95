#pragma once

#include "hmc/result.h"
#include "hmc/tls.h"

namespace hmc {

// The options with what the environment says where they say nothing: mode is off or required, and
// with off there is nothing else. invalidArgument where they contradict themselves.
Result<TlsOptions> withEnvironment(const TlsOptions& options);

inline bool isRequired(const TlsOptions& options) {
  return options.mode == TlsOptions::Mode::required;
}

}  // namespace hmc
