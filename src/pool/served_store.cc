#include "pool/served_store.h"

#include "base/environment.h"
#include "base/error.h"
#include "node/node_defaults.h"
#include "pool/local_address.h"

namespace hmc::pool {

namespace {

constexpr std::chrono::milliseconds kNoWait{0};

bool canBeServed(const std::string& url) {
  return url.rfind("tcp://", 0) == 0 || url.rfind("unix://", 0) == 0;
}

// A host whose own name means its loopback address, as Debian has it, tells the others nothing.
Status checkReach(const Launch& launch) {
  if (!launch.severalHosts || !canBeServed(launch.store)) return Status();
  HMC_ASSIGN(const std::string own, listenAddressFor(launch.store));
  if (own.rfind("tcp://127.", 0) != 0 && own.rfind("tcp://[::1]", 0) != 0) return Status();
  return error(Code::invalidArgument,
               "the store's address {} is a loopback address on this host, and {} has started "
               "ranks on others: set {} to tcp://ADDRESS:PORT, with an address that they reach",
               launch.store, launch.launcher, variable::kPoolStore.name);
}

}  // namespace

Result<Joining> joiningFrom(const Launch& launch, const PoolOptions& options) {
  Joining joining{launch.store, options, false};
  PoolOptions& joined = joining.options;
  if (!joined.rank) joined.rank = launch.rank;
  if (joined.capacity == 0) joined.capacity = launch.size.value_or(0);
  if (joined.capacity == 0 && !launch.launcher.empty()) {
    return error(Code::invalidArgument,
                 "{} does not tell its processes how many they are: set {}, or give the pool a "
                 "capacity",
                 launch.launcher, variable::kPoolSize.name);
  }
  if (joined.node.secret.empty()) {
    joined.node.secret = valueOf(variable::kSecret).value_or("");
  }
  if (joined.listen.empty()) HMC_TRY(checkReach(launch));
  joining.firstRank = joined.rank == 0U;
  return joining;
}

Result<StoreOfPool> openStoreOf(const Joining& joining, Deadline deadline,
                                const std::stop_token& stop) {
  const std::string& secret = joining.options.node.secret;
  const TlsOptions& tls = joining.options.node.tls;
  const bool asked = joining.options.serveStore;
  StoreOfPool opened;
  Status unserved;
  if (asked || (joining.firstRank && canBeServed(joining.store))) {
    auto started = store::Server::start(
        joining.store,
        {.secret = secret, .data = {}, .insecure = joining.options.node.insecure, .tls = tls});
    if (started.ok()) {
      opened.served = std::make_unique<ServedStore>(
          *std::move(started), joining.firstRank ? leaseOf(joining.options.node) : kNoWait);
    } else if (started.status().code() != Code::alreadyExists) {
      unserved = started.status();
      if (asked) return unserved;
    }
  }
  auto client =
      store::openStore(joining.store, {.secret = secret, .tls = tls, .stop = stop}, deadline);
  if (!client.ok() && !unserved.ok()) {
    return client.status().within("this process could not serve it itself (" + unserved.message() +
                                  ")");
  }
  if (!client.ok()) return client.status();
  opened.client = *std::move(client);
  return opened;
}

}  // namespace hmc::pool
