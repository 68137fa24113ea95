#pragma once

#include "hmc/cpp17.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hmc/export.h"
#include "hmc/result.h"
#include "hmc/tls.h"

// Where processes that know one address find each other: `hmc store` as a part of a program. Needs
// C++17.
namespace hmc {

namespace store {
class Server;
}
namespace pool {
class GatheringImpl;
}

/// How a store is served.
struct StoreServerOptions {
  std::string secret;                 ///< clients need the same; empty: that of HMC_SECRET
  size_t capacity = size_t{1} << 30;  ///< bytes of all keys and values
  /// A folder where they outlive the server, made if need be. Empty: none.
  std::string data;
  /// Without a secret: serves also where other hosts reach it, and everybody there.
  bool insecure = false;
  TlsOptions tls;  ///< whether connections are encrypted
};

/// Keeps small values in memory until it is destroyed. One that is started again with the same
/// `data` goes on with all keys and leases; without, it is empty, and its clients set again what
/// they hold by a lease. One thread, any number of clients. Safe from any thread.
class HMC_API StoreServer {
 public:
  /// "tcp://host:port", where port 0 picks one, or "unix:///path". alreadyExists when somebody
  /// listens there.
  [[nodiscard]] static Result<StoreServer> start(const std::string& address = "tcp://127.0.0.1:0",
                                                 const StoreServerOptions& options = {});
  ~StoreServer();  ///< Ends it; keys are gone unless there is a folder for them.
  StoreServer(StoreServer&&) noexcept;
  StoreServer& operator=(StoreServer&&) noexcept;

  /// With the port that was picked.
  const std::string& address() const;
  /// How many it has been asked so far, those included that keep leases alive.
  uint64_t requests() const;

 private:
  explicit StoreServer(std::unique_ptr<store::Server> server);
  std::unique_ptr<store::Server> server_;
};

/// Who meets where. What is left out is the launcher's.
struct GatheringOptions {
  std::string store;             ///< its address; empty: the launcher's
  std::optional<uint32_t> rank;  ///< none: the launcher's
  uint32_t size = 0;             ///< ranks are 0 to size - 1; 0: the launcher's
  std::string name = "default";  ///< several gatherings may use one store
  std::string secret;            ///< the store's; empty: that of HMC_SECRET
};

/// Processes that know one address, or have one launcher, and tell each other something, once. They
/// start in any order. For one thread at a time.
class HMC_API Gathering {
 public:
  /// Finds out who we are; wait() meets the others.
  [[nodiscard]] static Result<Gathering> begin(const GatheringOptions& options);
  /// Rank 0 serves the store, unless somebody does already, while this lives. The end of a store
  /// that all have met at waits a while for those that have not heard of it.
  ~Gathering();
  Gathering(Gathering&&) noexcept;
  Gathering& operator=(Gathering&&) noexcept;

  uint32_t rank() const;  ///< Ours.
  uint32_t size() const;  ///< How many ranks there are.
  /// The address from which this host reaches the store: "10.0.0.2".
  Result<std::string> host() const;

  /// What everyone has to tell, by rank. deadlineExceeded names who has not come; then it can be
  /// called again. alreadyExists when another process has our rank.
  Result<std::vector<std::string>> wait(
      const std::string& mine, std::chrono::nanoseconds timeout = std::chrono::seconds(30));
  /// Ends a wait() of another thread, and all later ones, with cancelled. Safe from any thread.
  void cancel();

 private:
  explicit Gathering(std::unique_ptr<pool::GatheringImpl> impl);
  std::unique_ptr<pool::GatheringImpl> impl_;
};

}  // namespace hmc
