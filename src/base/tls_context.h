#pragma once

#include <openssl/ssl.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/tls_session.h"
#include "hmc/result.h"
#include "hmc/tls.h"

namespace hmc {

// Makes the TLS sessions of one owner: TLS 1.3 alone, TLS_AES_128_GCM_SHA256, an ephemeral X25519
// or P-256 exchange in every handshake, no resumption and no early data. Safe from any thread.
class TlsContext {
 public:
  // Null where the options and the environment require none. Both sides show certificates and check
  // the other's, or where no files are named, prove that they know the secret.
  static Result<std::shared_ptr<TlsContext>> create(const TlsOptions& options,
                                                    const std::string& secret);

  // Answers the secret of one identity, empty where there is none. Called inside
  // TlsSession::handshake().
  using SecretOf = std::function<std::string(std::string_view identity)>;
  // For connections whose two ends know a secret of their own each: the dialler says its name. The
  // sessions read ahead, for who moves much: see TlsSession::buffered().
  static Result<std::shared_ptr<TlsContext>> forSecrets(
      SecretOf secretOf, uint64_t recordsPerKey = TlsSession::kRecordsPerKey);

  // Sessions over a connected, or connecting, non-blocking socket, which stays the caller's and
  // outlives the session. The context outlives it, too.
  Result<std::unique_ptr<TlsSession>> accept(int socket);
  Result<std::unique_ptr<TlsSession>> dial(int socket);
  Result<std::unique_ptr<TlsSession>> dial(int socket, const std::string& identity,
                                           const std::string& secret);

 private:
  using Context = std::shared_ptr<SSL_CTX>;
  TlsContext(SecretOf secretOf, uint64_t recordsPerKey)
      : secretOf_(std::move(secretOf)), recordsPerKey_(recordsPerKey) {}

  static int findSecret(SSL* ssl, const unsigned char* identity, size_t size, SSL_SESSION** found);
  static int useSecret(SSL* ssl, const EVP_MD* digest, const unsigned char** identity, size_t* size,
                       SSL_SESSION** used);
  Result<Context> make() const;
  std::string filesNow() const;
  // With certificates that were replaced meanwhile, if they fit together.
  Result<Context> current();
  Result<std::unique_ptr<TlsSession>> open(int socket, TlsSession::Side side, TlsSecret secret);

  const SecretOf secretOf_;  // none: with certificates
  const uint64_t recordsPerKey_;
  TlsOptions files_;
  TlsSecret own_;  // that dial(socket) uses

  std::mutex mutex_;  // guards what follows
  Context context_;
  std::string seen_;  // what filesNow() said when they were last read
};

}  // namespace hmc
