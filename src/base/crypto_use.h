#pragma once

namespace hmc {

// OpenSSL frees what it works with at exit(), while other threads may be in the middle of it.
// Whoever calls it does so while one of these lives that says true; after false, which is for good,
// this process ends and everything has to go without. Safe from any thread; may be nested.
class CryptoUse {
 public:
  CryptoUse() : begun_(begin()) {}
  ~CryptoUse() {
    if (begun_) end();
  }
  CryptoUse(const CryptoUse&) = delete;
  CryptoUse& operator=(const CryptoUse&) = delete;
  explicit operator bool() const { return begun_; }

 private:
  static bool begin();
  static void end();

  const bool begun_;
};

}  // namespace hmc
