#include "transport/registry.h"

#include <algorithm>

#include "base/error.h"
#include "transport/ipc/ipc.h"
#include "transport/tcp/tcp.h"
#include "transport/ucx/ucx.h"
#include "transport/verbs/verbs.h"

namespace hmc {

namespace {

using Made = Result<std::unique_ptr<Transport>>;

struct Entry {
  const char* name;
  Made (*make)(const TransportNeeds& needs);
};

// Best first.
constexpr Entry kTransports[] = {
    {"ipc", [](const TransportNeeds& needs) { return ipc::create(needs.fds, {}); }},
    {"verbs", [](const TransportNeeds& needs) { return verbs::create({needs.channels}); }},
    {"ucx", [](const TransportNeeds&) { return ucx::create(); }},
    {"tcp",
     [](const TransportNeeds& needs) { return tcp::create({.exchange = needs.fds.name()}); }},
};

std::string allNames() {
  std::string names;
  for (const Entry& entry : kTransports)
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

void add(TransportSet& set, const Entry& entry, const TransportNeeds& needs) {
  Made made = entry.make(needs);
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

Result<TransportSet> makeTransports(const std::vector<std::string>& wanted,
                                    const TransportNeeds& needs) {
  TransportSet set;
  if (wanted.empty()) {
    for (const Entry& entry : kTransports) add(set, entry, needs);
    return set;
  }
  for (const std::string& name : wanted) {
    const Entry* entry = find(name);
    if (entry == std::end(kTransports)) {
      return error(Code::invalidArgument, "there is no transport called \"{}\"; there are {}", name,
                   allNames());
    }
    add(set, *entry, needs);
  }
  return set;
}

}  // namespace hmc
