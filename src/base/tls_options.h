#pragma once

#include <string>

#include "hmc/result.h"
#include "hmc/tls.h"

namespace hmc {

// The options with what the environment says where they say nothing: mode is off or required, and
// with off there is nothing else. invalidArgument where they contradict themselves.
Result<TlsOptions> withEnvironment(const TlsOptions& options);

// Whether connections made by either are protected alike.
bool operator==(const TlsOptions& left, const TlsOptions& right);

// The key as a sentence may show it: its file, never its text.
std::string nameOfKey(const TlsOptions& options);
inline bool isText(const std::string& pem) {
  return pem.starts_with("-----BEGIN ");
}

inline bool isRequired(const TlsOptions& options) {
  return options.mode == TlsOptions::Mode::required;
}

}  // namespace hmc
