#include "control/security.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>

#include "base/cookie.h"
#include "base/environment.h"
#include "base/error.h"
#include "control/control.h"

namespace hmc::control {

namespace {

bool isLoopback(const SocketAddress& address) {
  if (address.family() == AF_INET) {
    const auto& four = reinterpret_cast<const sockaddr_in&>(address.bytes);
    return (ntohl(four.sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
  }
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address.bytes);
  if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) return six.sin6_addr.s6_addr[12] == IN_LOOPBACKNET;
  return IN6_IS_ADDR_LOOPBACK(&six.sin6_addr);
}

}  // namespace

Status addDefaults(ControlOptions& options, const TlsOptions& tls) {
  HMC_TRY(checkValuesOf(Variable::Reader::everybody));
  if (options.secret.empty()) options.secret = valueOf(variable::kSecret).value_or("");
  HMC_ASSIGN(options.tls, TlsContext::create(tls, options.secret));
  if (!options.secret.empty() || options.tls) return Status();
  HMC_ASSIGN(options.cookie, userCookie());
  return Status();
}

Secret secretFor(const ControlOptions& options, const SocketEnds& ends) {
  Secret secret = options.secret;
  if (secret.kind == Secret::Kind::shared || options.cookie.empty() || ends.isUnix) return secret;
  if (!isLoopback(ends.remoteHost)) return secret;
  secret.bytes = options.cookie;
  secret.kind = Secret::Kind::cookie;
  return secret;
}

bool isLoopback(const std::string& numericHost) {
  SocketAddress address;
  auto& four = reinterpret_cast<sockaddr_in&>(address.bytes);
  if (inet_pton(AF_INET, numericHost.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    return isLoopback(address);
  }
  auto& six = reinterpret_cast<sockaddr_in6&>(address.bytes);
  if (inet_pton(AF_INET6, numericHost.c_str(), &six.sin6_addr) != 1) return false;
  six.sin6_family = AF_INET6;
  return isLoopback(address);
}

Result<bool> checkListener(const ControlOptions& options, const Address& address,
                           const Meanings& meanings) {
  if (!options.secret.empty() || options.tls) return false;
  if (address.isUnix || std::all_of(meanings.begin(), meanings.end(),
                                    [](const SocketAddress& one) { return isLoopback(one); })) {
    return false;
  }
  const bool strict = valueOf(variable::kSecurity) == "strict";
  if (options.insecure && !strict) return true;
  return error(
      Code::permissionDenied,
      "{} can be reached from other hosts, and without a secret everybody there could read "
      "and write what is registered here: set {} to the same value in all processes, or "
      "{}=required "
      "with certificates{}",
      address.toString(), variable::kSecret.name, variable::kTls.name,
      strict ? fmt::format(" ({}=strict forbids to go on without)", variable::kSecurity.name)
             : ", or say insecure=true");
}

}  // namespace hmc::control
