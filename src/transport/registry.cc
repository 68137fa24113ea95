#include "transport/registry.h"

#include <algorithm>

#include "base/environment.h"
#include "base/error.h"
#include "base/tls_options.h"
#include "transport/ipc/ipc.h"
#include "transport/tcp/tcp.h"
#include "transport/ucx/ucx.h"
#include "transport/verbs/verbs.h"

namespace hmc {

namespace {

using Made = Result<std::unique_ptr<Transport>>;

struct Entry {
  const char* name;
  bool isPrivate;  // what leaves the memory of one user on one host is encrypted on demand
  bool isChecked;  // bytes that are altered on the way are noticed: by RDMA NICs always
  Made (*make)(const TransportNeeds& needs);
};

// Best first.
constexpr Entry kTransports[] = {
    {"ipc", true, true, [](const TransportNeeds& needs) { return ipc::create(needs.fds, {}); }},
    {"verbs", false, true,
     [](const TransportNeeds& needs) { return verbs::create({needs.channels}); }},
    {"ucx", false, false, [](const TransportNeeds&) { return ucx::create(); }},
    {"tcp", true, true,
     [](const TransportNeeds& needs) {
       return tcp::create({.exchange = needs.fds.name(),
                           .tls = isRequired(needs.tls),
                           .integrity = needs.integrity,
                           .ports = needs.dataPorts});
     }},
};

std::string allNames() {
  std::string names;
  for (const Entry& entry : kTransports)
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

Made make(const Entry& entry, const TransportNeeds& needs) {
  if (needs.integrity && !entry.isChecked) {
    return error(Code::unsupported,
                 "{} has no checksum over what it moves, and integrity is asked for: use another "
                 "transport, or do without integrity",
                 entry.name);
  }
  const auto& exceptions = needs.tls.exceptions;
  const bool excepted =
      std::find(exceptions.begin(), exceptions.end(), entry.name) != exceptions.end();
  if (!isRequired(needs.tls) || entry.isPrivate || excepted) return entry.make(needs);
  return error(Code::permissionDenied,
               "{} does not encrypt what it moves, and TLS is required: name it in {} to allow it "
               "all the same",
               entry.name, variable::kTlsExceptions.name);
}

void add(TransportSet& set, const Entry& entry, const TransportNeeds& needs) {
  Made made = make(entry, needs);
  if (made.ok()) {
    set.ready.push_back(*std::move(made));
  } else {
    set.missing.push_back({entry.name, made.status()});
  }
}

const Entry* find(const std::string& name) {
  return std::find_if(std::begin(kTransports), std::end(kTransports),
                      [&](const Entry& one) { return name == one.name; });
}

Status checkName(const std::string& name) {
  if (find(name) != std::end(kTransports)) return Status();
  return error(Code::invalidArgument, "there is no transport called \"{}\"; there are {}", name,
               allNames());
}

}  // namespace

bool isBetterTransport(const std::string& a, const std::string& b) {
  return find(a) < find(b);
}

Result<TransportSet> makeTransports(const std::vector<std::string>& wanted,
                                    const TransportNeeds& needs) {
  TransportSet set;
  for (const std::string& name : needs.tls.exceptions) HMC_TRY(checkName(name));
  if (wanted.empty()) {
    for (const Entry& entry : kTransports) add(set, entry, needs);
    return set;
  }
  for (const std::string& name : wanted) {
    HMC_TRY(checkName(name));
    add(set, *find(name), needs);
  }
  return set;
}

}  // namespace hmc
