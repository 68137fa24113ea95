#include "transport/registry.h"

#include <algorithm>

#include "base/error.h"
#include "transport/ipc/ipc.h"
#include "transport/tcp/tcp.h"

namespace hmc {

namespace {

using Made = Result<std::unique_ptr<Transport>>;

struct Entry {
  const char* name;
  Made (*make)(FdExchange& fds);
};

Made notBuilt(const char* what) {
  return error(Code::unsupported, "this version of HMC has no {} transport yet", what);
}

// Best first.
constexpr Entry kTransports[] = {
    {"ipc", [](FdExchange& fds) -> Made { return ipc::create(fds, {}); }},
    {"verbs", [](FdExchange&) -> Made { return notBuilt("RDMA verbs"); }},
    {"ucx", [](FdExchange&) -> Made { return notBuilt("UCX"); }},
    {"tcp", [](FdExchange&) -> Made { return tcp::create({}); }},
};

std::string allNames() {
  std::string names;
  for (const Entry& entry : kTransports)
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

void add(TransportSet& set, const Entry& entry, FdExchange& fds) {
  Made made = entry.make(fds);
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

}  // namespace

bool isBetterTransport(const std::string& a, const std::string& b) {
  return find(a) < find(b);
}

Result<TransportSet> makeTransports(const std::vector<std::string>& wanted, FdExchange& fds) {
  TransportSet set;
  if (wanted.empty()) {
    for (const Entry& entry : kTransports) add(set, entry, fds);
    return set;
  }
  for (const std::string& name : wanted) {
    const Entry* entry = find(name);
    if (entry == std::end(kTransports)) {
      return error(Code::invalidArgument, "there is no transport called \"{}\"; there are {}", name,
                   allNames());
    }
    add(set, *entry, fds);
  }
  return set;
}

}  // namespace hmc
