#pragma once

#include <string>

#include "control/byte_stream.h"
#include "control/socket.h"
#include "hmc/result.h"
#include "hmc/tls.h"

namespace hmc::control {

struct ControlOptions;

// What proves on one connection that the two belong together.
struct Secret {
  enum class Kind : uint8_t { none, cookie, shared };
  Secret() = default;
  Secret(std::string shared)  // NOLINT(google-explicit-constructor)
      : bytes(std::move(shared)), kind(bytes.empty() ? Kind::none : Kind::shared) {}
  Secret(const char* shared) : Secret(std::string(shared)) {}  // NOLINT

  std::string bytes;
  Kind kind = Kind::none;
};

// Where the caller names no secret: that of HMC_SECRET. With it, or with certificates, TLS where
// that is required; without either, the user's cookie.
Status addDefaults(ControlOptions& options, const TlsOptions& tls);

// The shared secret everywhere. Without one, and without TLS: the user's cookie over loopback,
// where other users of this host are strangers; nothing on a unix socket, whose ends ask the
// kernel, and nothing on the network.
Secret secretFor(const ControlOptions& options, const SocketEnds& ends);

bool isLoopback(const std::string& numericHost);

// May one listen there with these options? Where only this host reaches it, or with a secret or
// TLS; elsewhere only when the options say that it is insecure, and the environment does not forbid
// it. Answers whether that is so: everybody is let in.
Result<bool> checkListener(const ControlOptions& options, const Address& address,
                           const Meanings& meanings);

}  // namespace hmc::control
