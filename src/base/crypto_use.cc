#include "base/crypto_use.h"

#include <openssl/ssl.h>
#include <pthread.h>

#include <atomic>

#include "base/futex.h"

namespace hmc {

namespace {

constexpr uint32_t kEnding = uint32_t{1} << 31;
// Nobody is inside for long, since nothing there waits. A busy machine may let it wait, though.
constexpr std::chrono::seconds kLongestUse{10};

std::atomic<uint32_t> users{0};  // how many are inside, and kEnding

struct AtExit {
  ~AtExit() {
    users.fetch_or(kEnding);
    const Deadline deadline(kLongestUse);
    for (uint32_t now = users; now != kEnding && !deadline.passed(); now = users)
      futexWait(users, now, deadline);
  }
};

bool prepare() {
  if (OPENSSL_init_ssl(0, nullptr) != 1) return false;
  // The threads that were inside are the parent's.
  pthread_atfork(nullptr, nullptr, [] { users.fetch_and(kEnding); });
  // What is made last ends first: before what OpenSSL has registered.
  static const AtExit atExit;
  return true;
}

}  // namespace

bool CryptoUse::begin() {
  static const bool prepared = prepare();
  if (!prepared) return false;
  if ((users.fetch_add(1) & kEnding) == 0) return true;
  end();
  return false;
}

void CryptoUse::end() {
  if (users.fetch_sub(1) == (kEnding | 1)) futexWakeAll(users);
}

}  // namespace hmc
