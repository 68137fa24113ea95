#include "base/proof.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/crypto_use.h"

namespace hmc {

std::string proof(const std::string& secret, std::string_view text) {
  const CryptoUse use;
  if (!use) return {};
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest, &size);
  return std::string(reinterpret_cast<const char*>(digest), size);
}

bool sameProof(std::string_view a, std::string_view b) {
  return a.size() == kProofSize && b.size() == kProofSize &&
         CRYPTO_memcmp(a.data(), b.data(), kProofSize) == 0;
}

}  // namespace hmc
