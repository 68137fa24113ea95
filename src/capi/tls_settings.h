#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "hmc/result.h"
#include "hmc/tls.h"
#include "pool/world.h"
#include "smem/host/smem_bm_v2.h"
#include "smem/host/smem_security.h"

namespace hmc::capi {

// What the three forms of MemFabric's TLS settings mean. TLS that is asked for and cannot be had as
// it is described is an error: nothing goes unprotected, or less protected, in silence.
Result<TlsOptions> tlsFrom(const smem_tls_option& option);
Result<TlsOptions> tlsFrom(const smem_tls_config& config);
// "tlsCaPath: /etc/ca; tlsCaFile: a.pem,b.pem; tlsCert: /etc/me.pem"
Result<TlsOptions> tlsFrom(std::string_view text);

// What a program has set for everything that it opens from now on. Safe from any thread.
class TlsSettings {
 public:
  void set(std::optional<TlsOptions> options);
  // For options that name no key.
  void setKey(std::string key, std::string password);
  pool::Protection protection() const;

 private:
  mutable std::mutex mutex_;
  std::optional<TlsOptions> options_;  // guarded by mutex_; none: what HMC_TLS says
  std::string key_;                    // guarded by mutex_
  std::string password_;               // guarded by mutex_
};

}  // namespace hmc::capi
