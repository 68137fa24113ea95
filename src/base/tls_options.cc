#include "base/tls_options.h"

#include <sstream>
#include <tuple>

#include "base/environment.h"
#include "base/error.h"

namespace hmc {

namespace {

using Mode = TlsOptions::Mode;

bool namesFiles(const TlsOptions& options) {
  return !options.ca.empty() || !options.certificate.empty() || !options.key.empty();
}

void takeFiles(TlsOptions& options) {
  options.ca = valueOf(variable::kTlsCa).value_or("");
  options.certificate = valueOf(variable::kTlsCertificate).value_or("");
  options.key = valueOf(variable::kTlsKey).value_or("");
  options.keyPassword = valueOf(variable::kTlsKeyPassword).value_or("");
}

void takeExceptions(TlsOptions& options) {
  std::istringstream names(valueOf(variable::kTlsExceptions).value_or(""));
  for (std::string name; std::getline(names, name, ',');) options.exceptions.push_back(name);
}

}  // namespace

bool operator==(const TlsOptions& left, const TlsOptions& right) {
  const auto all = [](const TlsOptions& of) {
    return std::tie(of.mode, of.ca, of.certificate, of.key, of.keyPassword, of.crl, of.exceptions);
  };
  return all(left) == all(right);
}

std::string nameOfKey(const TlsOptions& options) {
  return isText(options.key) ? "given as text" : options.key;
}

Result<TlsOptions> withEnvironment(const TlsOptions& options) {
  TlsOptions all = options;
  if (all.mode == Mode::environment) {
    HMC_TRY(checkValue(variable::kTls));
    all.mode = valueOf(variable::kTls) == "required" ? Mode::required : Mode::off;
    // Who names certificates, or what goes with them, believes to be encrypted.
    const bool expected =
        namesFiles(options) || !options.keyPassword.empty() || !options.crl.empty();
    if (all.mode == Mode::off && expected) {
      return error(Code::invalidArgument,
                   "certificates are named and tls is off: set the mode, or {}, to required",
                   variable::kTls.name);
    }
  }
  if (all.mode == Mode::off) return TlsOptions{.mode = Mode::off};
  if (!namesFiles(all)) takeFiles(all);
  if (all.crl.empty()) all.crl = valueOf(variable::kTlsCrl).value_or("");
  if (all.exceptions.empty()) takeExceptions(all);
  const bool complete = !all.ca.empty() && !all.certificate.empty() && !all.key.empty();
  if (namesFiles(all) && !complete) {
    return error(Code::invalidArgument,
                 "tls needs three files or none, and these are the CA \"{}\", the certificate "
                 "\"{}\" and the key \"{}\"",
                 all.ca, all.certificate, nameOfKey(all));
  }
  if (!complete && !all.crl.empty()) {
    return error(Code::invalidArgument,
                 "tls: the revocation lists \"{}\" say nothing about a secret: name a CA, a "
                 "certificate and a key as well",
                 all.crl);
  }
  return all;
}

}  // namespace hmc
