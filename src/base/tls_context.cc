#include "base/tls_context.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include <sstream>
#include <vector>

#include "base/crypto_use.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/log.h"
#include "base/proof.h"
#include "base/tls_options.h"

namespace hmc {

namespace {

constexpr const char* kCipher = "TLS_AES_128_GCM_SHA256";
constexpr unsigned char kCipherId[] = {0x13, 0x01};
constexpr const char* kGroups = "X25519:P-256";
constexpr const char* kSharedSecret = "hmc";  // the identity of a secret that all sides have
// OpenSSL takes a secret for a session that is resumed, and demands a name of where it is valid.
constexpr unsigned char kSessionContext[] = {'h', 'm', 'c'};
constexpr size_t kReadBuffer = size_t{64} << 10;

struct FreeContext {
  void operator()(SSL_CTX* context) const {
    if (const CryptoUse use; use) SSL_CTX_free(context);
  }
};

std::string lastReason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason ? reason : "unknown";
}

Status unusable(const char* what, const std::string& file) {
  return error(Code::invalidArgument, "tls: {} in \"{}\" cannot be used: {}", what, file,
               lastReason());
}

std::vector<std::string> namesIn(const std::string& separated) {
  std::vector<std::string> names;
  std::istringstream all(separated);
  for (std::string name; std::getline(all, name, ':');) {
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

// Whose certificates are taken for good, and which of them are not any more.
Status trust(SSL_CTX* context, const TlsOptions& files) {
  for (const std::string& name : namesIn(files.ca)) {
    if (SSL_CTX_load_verify_file(context, name.c_str()) != 1) return unusable("the CA", name);
  }
  const auto lists = namesIn(files.crl);
  if (lists.empty()) return Status();
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  X509_LOOKUP* reader = X509_STORE_add_lookup(store, X509_LOOKUP_file());
  for (const std::string& name : lists) {
    if (X509_load_crl_file(reader, name.c_str(), X509_FILETYPE_PEM) < 1)
      return unusable("the revocation list", name);
  }
  X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
  return Status();
}

struct PasswordAsked {
  const std::string& password;
  bool asked = false;
};

// Without a function of ours OpenSSL would ask for it at the terminal.
int givePassword(char* into, int size, int /*writing*/, void* asking) {
  auto& asked = *static_cast<PasswordAsked*>(asking);
  asked.asked = true;
  if (asked.password.empty() || asked.password.size() > static_cast<size_t>(size)) return -1;
  return static_cast<int>(asked.password.copy(into, static_cast<size_t>(size)));
}

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};

Status useKey(SSL_CTX* context, const TlsOptions& files) {
  const std::unique_ptr<BIO, FreeBio> source(
      isText(files.key) ? BIO_new_mem_buf(files.key.data(), static_cast<int>(files.key.size()))
                        : BIO_new_file(files.key.c_str(), "r"));
  PasswordAsked asking{files.keyPassword};
  const std::unique_ptr<EVP_PKEY, FreeKey> key(
      source ? PEM_read_bio_PrivateKey(source.get(), nullptr, givePassword, &asking) : nullptr);
  if (!key && asking.asked && files.keyPassword.empty()) {
    return error(Code::invalidArgument, "tls: the key {} is encrypted: give its password ({})",
                 nameOfKey(files), variable::kTlsKeyPassword.name);
  }
  if (!key || SSL_CTX_use_PrivateKey(context, key.get()) != 1)
    return unusable("the key", nameOfKey(files));
  return Status();
}

// The key itself is another one for each use of the secret.
SSL_SESSION* sessionOf(SSL* ssl, const std::string& secret) {
  const std::string key = proof(secret, "hmc tls 1.3 psk");
  SSL_SESSION* session = SSL_SESSION_new();
  const bool made =
      session && key.size() == kProofSize &&
      SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(key.data()),
                                  key.size()) == 1 &&
      SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, kCipherId)) == 1 &&
      SSL_SESSION_set1_id_context(session, kSessionContext, sizeof(kSessionContext)) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1;
  if (made) return session;
  SSL_SESSION_free(session);
  return nullptr;
}

}  // namespace

Result<std::shared_ptr<TlsContext>> TlsContext::create(const TlsOptions& options,
                                                       const std::string& secret) {
  HMC_ASSIGN(const TlsOptions all, withEnvironment(options));
  if (!isRequired(all)) return std::shared_ptr<TlsContext>();
  const bool bySecret = all.ca.empty();
  if (bySecret && secret.empty()) {
    return error(
        Code::invalidArgument,
        "tls is required and has no key: set a secret, or name a CA, a certificate and its "
        "key, the same way on both sides");
  }
  SecretOf find;
  if (bySecret) {
    find = [secret](std::string_view identity) {
      return identity == kSharedSecret ? secret : std::string();
    };
  }
  std::shared_ptr<TlsContext> made(new TlsContext(std::move(find), TlsSession::kRecordsPerKey));
  made->files_ = all;
  if (bySecret) made->own_ = {kSharedSecret, secret};
  made->seen_ = made->filesNow();
  HMC_ASSIGN(made->context_, made->make());
  return made;
}

Result<std::shared_ptr<TlsContext>> TlsContext::forSecrets(SecretOf secretOf,
                                                           uint64_t recordsPerKey) {
  std::shared_ptr<TlsContext> made(new TlsContext(std::move(secretOf), recordsPerKey));
  HMC_ASSIGN(made->context_, made->make());
  SSL_CTX_set_read_ahead(made->context_.get(), 1);
  SSL_CTX_set_default_read_buffer_len(made->context_.get(), kReadBuffer);
  return made;
}

Result<TlsContext::Context> TlsContext::make() const {
  const CryptoUse use;
  if (!use) return TlsSession::refusal();
  ERR_clear_error();
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_method()), FreeContext());
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_max_proto_version(context.get(), TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context.get(), kCipher) != 1 ||
      SSL_CTX_set1_groups_list(context.get(), kGroups) != 1 ||
      SSL_CTX_set_num_tickets(context.get(), 0) != 1) {
    return error(Code::unsupported, "this OpenSSL has no TLS 1.3 with {} and {}: {}", kCipher,
                 kGroups, lastReason());
  }
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  if (secretOf_) {
    SSL_CTX_set_session_id_context(context.get(), kSessionContext, sizeof(kSessionContext));
    SSL_CTX_set_app_data(context.get(), const_cast<TlsContext*>(this));
    SSL_CTX_set_psk_find_session_callback(context.get(), findSecret);
    SSL_CTX_set_psk_use_session_callback(context.get(), useSecret);
    return context;
  }
  HMC_TRY(trust(context.get(), files_));
  if (SSL_CTX_use_certificate_chain_file(context.get(), files_.certificate.c_str()) != 1)
    return unusable("the certificate", files_.certificate);
  HMC_TRY(useKey(context.get(), files_));
  return context;
}

// Changes with every replacement of a file.
std::string TlsContext::filesNow() const {
  std::string all;
  std::vector<std::string> names = namesIn(files_.ca);
  for (std::string& list : namesIn(files_.crl)) names.push_back(std::move(list));
  names.push_back(files_.certificate);
  names.push_back(files_.key);
  for (const std::string& name : names) {
    struct stat facts {};
    if (name.empty() || stat(name.c_str(), &facts) != 0) continue;
    all += fmt::format("{}.{}.{}.{};", facts.st_ino, facts.st_size, facts.st_mtim.tv_sec,
                       facts.st_mtim.tv_nsec);
  }
  return all;
}

Result<TlsContext::Context> TlsContext::current() {
  std::lock_guard lock(mutex_);
  if (files_.ca.empty()) return context_;
  std::string now = filesNow();
  if (now == seen_) return context_;
  seen_ = std::move(now);
  auto made = make();
  // One of the files may have been replaced before the others.
  if (!made.ok()) {
    logWarn("{}; the certificates that were read before stay in use", made.status().message());
    return context_;
  }
  context_ = *std::move(made);
  logInfo("tls: read the certificates again");
  return context_;
}

Result<std::unique_ptr<TlsSession>> TlsContext::accept(int socket) {
  return open(socket, TlsSession::Side::acceptor, {secretOf_ ? "any" : "", {}});
}

Result<std::unique_ptr<TlsSession>> TlsContext::dial(int socket) {
  return open(socket, TlsSession::Side::dialler, own_);
}

Result<std::unique_ptr<TlsSession>> TlsContext::dial(int socket, const std::string& identity,
                                                     const std::string& secret) {
  return open(socket, TlsSession::Side::dialler, {identity, secret});
}

Result<std::unique_ptr<TlsSession>> TlsContext::open(int socket, TlsSession::Side side,
                                                     TlsSecret secret) {
  HMC_ASSIGN(const Context context, current());
  const CryptoUse use;
  if (!use) return TlsSession::refusal();
  ERR_clear_error();
  SSL* ssl = SSL_new(context.get());
  if (!ssl) return error(Code::exhausted, "no memory for a TLS session: {}", lastReason());
  return std::make_unique<TlsSession>(ssl, socket, side, std::move(secret), recordsPerKey_);
}

int TlsContext::findSecret(SSL* ssl, const unsigned char* identity, size_t size,
                           SSL_SESSION** found) {
  const auto& self = *static_cast<const TlsContext*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  const std::string secret = self.secretOf_({reinterpret_cast<const char*>(identity), size});
  *found = secret.empty() ? nullptr : sessionOf(ssl, secret);
  return 1;
}

int TlsContext::useSecret(SSL* ssl, const EVP_MD* digest, const unsigned char** identity,
                          size_t* size, SSL_SESSION** used) {
  *used = nullptr;
  if (digest != nullptr && !EVP_MD_is_a(digest, "SHA256")) return 1;
  const TlsSecret& secret = static_cast<TlsSession*>(SSL_get_app_data(ssl))->secret();
  *identity = reinterpret_cast<const unsigned char*>(secret.identity.data());
  *size = secret.identity.size();
  *used = sessionOf(ssl, secret.secret);
  return *used ? 1 : 0;
}

}  // namespace hmc
