#pragma once

#include <string>
#include <vector>

namespace hmc {

/// Whether what leaves this process is encrypted, with TLS 1.3, and by what the two sides know each
/// other: docs/decisions/014-psk-or-certificates.md.
struct TlsOptions {
  /// off: nothing is. required: everything is, and a peer that does not encrypt is refused.
  enum class Mode { environment, off, required };
  Mode mode = Mode::environment;  ///< what HMC_TLS says; without it, off

  /// PEM files: the CA that the certificates of all sides come from, ours with what leads to that
  /// CA, and its key. All three or none. None: those of HMC_TLS_CA, HMC_TLS_CERT and HMC_TLS_KEY,
  /// and without these the secret is the key. Files that have changed are read again before the
  /// next connection; connections that there are go on. Several CAs are separated by ":". The key
  /// may also be the PEM text itself.
  std::string ca;
  std::string certificate;
  std::string key;
  std::string keyPassword;  ///< of a key that is encrypted; empty: HMC_TLS_KEY_PASSWORD's
  /// PEM files of revocation lists, separated by ":", one list of each CA. A certificate on one is
  /// refused, and so is every certificate whose CA has no list here, or one that has expired.
  /// Empty: those of HMC_TLS_CRL, and without these none are asked for.
  std::string crl;

  /// Transports that may move bytes although they do not encrypt them: "verbs", "ucx". Empty: those
  /// of HMC_TLS_EXCEPTIONS.
  std::vector<std::string> exceptions;
};

}  // namespace hmc
