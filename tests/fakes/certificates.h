#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "hmc/tls.h"

namespace hmc::test {

// A CA of a test's own, and certificates that it signs, as PEM files in a folder that goes with it.
class Certificates {
 public:
  explicit Certificates(const std::string& name = "test CA")
      : folder_(std::filesystem::temp_directory_path() / ("hmc-tls-" + hex(randomBytes(6)))),
        key_(EVP_EC_gen("P-256")),
        ca_(sign(name, key_.get(), 3600, nullptr)) {
    std::filesystem::create_directory(folder_);
    writeCertificate(folder_ / "ca.pem", ca_.get());
  }
  ~Certificates() { std::filesystem::remove_all(folder_); }
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  std::string ca() const { return folder_ / "ca.pem"; }

  // Files of a participant, valid for so many seconds from now on; less than none: expired. Under a
  // name that exists they are replaced. With a password the key is encrypted.
  TlsOptions issue(const std::string& name, long seconds = 3600,
                   const std::string& password = "") const {
    const Key key(EVP_EC_gen("P-256"));
    const Certificate certificate = sign(name, key.get(), seconds, ca_.get());
    TlsOptions options{.mode = TlsOptions::Mode::required};
    options.ca = ca();
    options.certificate = folder_ / (name + ".pem");
    options.key = folder_ / (name + ".key");
    writeCertificate(options.certificate, certificate.get());
    const File file(std::fopen(options.key.c_str(), "w"));
    const EVP_CIPHER* cipher = password.empty() ? nullptr : EVP_aes_256_cbc();
    PEM_write_PKCS8PrivateKey(file.get(), key.get(), cipher, password.data(),
                              static_cast<int>(password.size()), nullptr, nullptr);
    return options;
  }

  // The CA's list of the certificates that are good no more, valid as issue() has it.
  std::string revoke(const std::vector<std::string>& names, long seconds = 3600) const {
    const RevocationList list(X509_CRL_new());
    X509_CRL_set_version(list.get(), 1);
    X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(ca_.get()));
    const Time from(X509_gmtime_adj(nullptr, seconds < 0 ? 2 * seconds : -3600));
    const Time until(X509_gmtime_adj(nullptr, seconds));
    X509_CRL_set1_lastUpdate(list.get(), from.get());
    X509_CRL_set1_nextUpdate(list.get(), until.get());
    for (const std::string& name : names) {
      const File file(std::fopen((folder_ / (name + ".pem")).c_str(), "r"));
      const Certificate revoked(PEM_read_X509(file.get(), nullptr, nullptr, nullptr));
      X509_REVOKED* entry = X509_REVOKED_new();
      X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(revoked.get()));
      X509_REVOKED_set_revocationDate(entry, from.get());
      X509_CRL_add0_revoked(list.get(), entry);
    }
    X509_CRL_sign(list.get(), key_.get(), EVP_sha256());
    const std::filesystem::path path = folder_ / "crl.pem";
    const File file(std::fopen(path.c_str(), "w"));
    PEM_write_X509_CRL(file.get(), list.get());
    return path;
  }

 private:
  template <auto function>
  struct Free {
    template <class T>
    void operator()(T* object) const {
      function(object);
    }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
  using Certificate = std::unique_ptr<X509, Free<X509_free>>;
  using RevocationList = std::unique_ptr<X509_CRL, Free<X509_CRL_free>>;
  using Time = std::unique_ptr<ASN1_TIME, Free<ASN1_TIME_free>>;
  using File = std::unique_ptr<std::FILE, Free<std::fclose>>;

  static void writeCertificate(const std::filesystem::path& path, X509* certificate) {
    const File file(std::fopen(path.c_str(), "w"));
    PEM_write_X509(file.get(), certificate);
  }
  // Without a CA it is one.
  Certificate sign(const std::string& name, EVP_PKEY* subject, long seconds, X509* ca) const {
    Certificate made(X509_new());
    X509_set_version(made.get(), 2);
    ASN1_INTEGER_set_uint64(X509_get_serialNumber(made.get()), randomU64() >> 1);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), seconds < 0 ? 2 * seconds : -3600);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), seconds);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_issuer_name(made.get(), X509_get_subject_name(ca ? ca : made.get()));
    X509_set_pubkey(made.get(), subject);
    if (!ca) {
      X509_EXTENSION* isCa =
          X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints, "critical,CA:TRUE");
      X509_add_ext(made.get(), isCa, -1);
      X509_EXTENSION_free(isCa);
    }
    X509_sign(made.get(), key_.get(), EVP_sha256());
    return made;
  }

  const std::filesystem::path folder_;
  const Key key_;
  const Certificate ca_;
};

}  // namespace hmc::test
