#include "base/bond.h"

#include "base/proof.h"

namespace hmc {

namespace {

std::string signature(const std::string& secret, bool initiator, std::string_view text) {
  return proof(secret,
               (initiator ? "hmc bond initiator" : "hmc bond acceptor") + std::string(text));
}

}  // namespace

std::string Bond::sign(std::string_view text) const {
  return signature(secret, initiator, text);
}

bool Bond::signedByPeer(std::string_view text, std::string_view theirs) const {
  return sameProof(theirs, signature(secret, !initiator, text));
}

}  // namespace hmc
