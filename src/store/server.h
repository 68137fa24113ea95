#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/interface.h"
#include "hmc/deadline.h"
#include "hmc/result.h"
#include "hmc/tls.h"

namespace hmc::store {

struct ServerOptions {
  std::string secret;                 // clients need the same; empty: that of HMC_SECRET
  size_t capacity = size_t{1} << 30;  // bytes of all keys and values
  std::string data;                   // a folder where they outlive the server; empty: none
  bool insecure = false;              // as NodeOptions::insecure
  TlsOptions tls{};
};

// Serves a store from memory until it is destroyed. One thread, any number of clients.
class Server : public Interface {
 public:
  // "tcp://host:port"; port 0 picks one. alreadyExists when somebody listens there.
  static Result<std::unique_ptr<Server>> start(const std::string& address,
                                               const ServerOptions& options);
  // With the port that was picked.
  virtual const std::string& address() const = 0;
  // How many it has been asked so far, those included that keep leases alive.
  virtual uint64_t requests() const = 0;
  // Waits until no client is connected. False when one still is at the deadline. The connection of
  // a process that ended is gone at once, whatever its leases say.
  virtual bool awaitNoClients(Deadline deadline) = 0;
};

}  // namespace hmc::store
