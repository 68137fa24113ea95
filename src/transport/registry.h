#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/fd_exchange.h"
#include "base/port_range.h"
#include "hmc/tls.h"
#include "transport/transport.h"

namespace hmc {

struct TransportSet {
  struct Missing {
    std::string name;
    Status why;
  };
  std::vector<std::unique_ptr<Transport>> ready;  // best first
  std::vector<Missing> missing;
};

struct TransportNeeds {
  FdExchange& fds;   // must outlive them
  int channels = 1;  // VerbsOptions::channels
  // Required: a transport that does not encrypt what leaves the host is missing, unless it is one
  // of the exceptions.
  TlsOptions tls{};
  // A transport that cannot tell that its bytes were altered on the way is missing.
  bool integrity = false;
  // Where tcp listens.
  PortRange dataPorts{};
};

// Every transport of this build, or those named in `wanted`, in that order. One that cannot run
// here is listed with the reason; a name that no build has is an error that lists the names.
Result<TransportSet> makeTransports(const std::vector<std::string>& wanted,
                                    const TransportNeeds& needs);

// Is transport `a` ahead of `b` in the order in which they are tried? A name that no build has is
// ahead of nothing.
bool isBetterTransport(const std::string& a, const std::string& b);

}  // namespace hmc
