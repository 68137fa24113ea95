#include "pool/world.h"

#include <arpa/inet.h>

#include <charconv>

#include "base/error.h"
#include "base/tls_options.h"
#include "memory/backends.h"
#include "pool/local_address.h"

namespace hmc::pool {

namespace {

// A process that the store has not heard of for so long is gone.
constexpr std::chrono::milliseconds kRankLease{5000};
// How long the end of a store waits for its clients.
constexpr std::chrono::milliseconds kStoreFarewell{5000};

// The port's digits and what stands before them: "10.0.0.1" or "[::1]".
struct HostAndPort {
  std::string host;
  std::string port;
};

Result<HostAndPort> split(const std::string& url) {
  constexpr std::string_view kScheme = "tcp://";
  if (url.rfind(kScheme, 0) != 0) {
    return error(Code::invalidArgument, "the store's URL \"{}\" does not begin with \"tcp://\"",
                 url);
  }
  const size_t colon = url.rfind(':');
  if (colon < kScheme.size()) {
    return error(Code::invalidArgument, "the store's URL \"{}\" has no port: tcp://IPv4:port", url);
  }
  return HostAndPort{url.substr(kScheme.size(), colon - kScheme.size()), url.substr(colon + 1)};
}

Status checkHost(const std::string& host, const std::string& url) {
  in_addr four{};
  in6_addr six{};
  if (inet_pton(AF_INET, host.c_str(), &four) == 1) {
    if (four.s_addr != INADDR_ANY) return Status();
    return error(Code::invalidArgument,
                 "the store's URL \"{}\" has the address 0.0.0.0, which is none that other "
                 "processes can connect to: name one of the host that serves it",
                 url);
  }
  if (host.size() > 2 && host.front() == '[' && host.back() == ']' &&
      inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &six) == 1) {
    return Status();
  }
  return error(Code::invalidArgument,
               "the store's URL \"{}\" has the host \"{}\", which is no IP address", url, host);
}

Status checkPort(const std::string& port, const std::string& url) {
  constexpr uint32_t kLowest = 1025;
  constexpr uint32_t kHighest = 65535;
  uint32_t number = 0;
  const char* const end = port.data() + port.size();
  const auto [stop, problem] = std::from_chars(port.data(), end, number);
  if (problem == std::errc() && stop == end && number >= kLowest && number <= kHighest) {
    return Status();
  }
  return error(Code::invalidArgument, "the store's URL \"{}\" has the port \"{}\", not {} to {}",
               url, port, kLowest, kHighest);
}

}  // namespace

bool operator==(const Protection& left, const Protection& right) {
  return left.store == right.store && left.peers == right.peers;
}

Status checkStoreUrl(const std::string& url) {
  HMC_ASSIGN(const auto parts, split(url));
  HMC_TRY(checkHost(parts.host, url));
  return checkPort(parts.port, url);
}

bool Stores::serves(const std::string& url) {
  std::lock_guard lock(mutex_);
  auto found = served_.find(url);
  return found != served_.end() && !found->second.expired();
}

Result<std::shared_ptr<ServedStore>> Stores::serve(const std::string& url, const TlsOptions& tls) {
  HMC_TRY(checkStoreUrl(url));
  HMC_ASSIGN(auto server,
             store::Server::start(url, {.secret = {}, .data = {}, .insecure = true, .tls = tls}));
  auto served = std::make_shared<ServedStore>(std::move(server), kStoreFarewell);
  std::lock_guard lock(mutex_);
  served_[url] = served;
  return served;
}

Result<std::shared_ptr<ServedStore>> Stores::serverFor(const std::string& url, Serve serve,
                                                       const TlsOptions& tls) {
  std::shared_ptr<ServedStore> none;
  if (serve == Serve::no || serves(url)) return none;
  auto started = this->serve(url, tls);
  if (started.ok() || serve == Serve::ifFree) return started.ok() ? *started : none;
  // Another process serves it, or something else listens there: opening it shows.
  if (started.status().code() == Code::alreadyExists) return none;
  return started.status();
}

Result<std::shared_ptr<OpenStore>> Stores::open(const std::string& url, Serve serve,
                                                const Protection& protection, Deadline deadline) {
  HMC_TRY(checkStoreUrl(url));
  {
    std::lock_guard lock(mutex_);
    if (auto known = stores_[url].lock()) {
      if (known->protection == protection) return known;
      return error(Code::invalidArgument,
                   "this process uses the store {} with other TLS settings: end that first", url);
    }
  }
  HMC_ASSIGN(auto served, serverFor(url, serve, protection.store));
  HMC_ASSIGN(auto client, store::openStore(url, {.tls = protection.store}, deadline));
  std::shared_ptr<OpenStore> opened(
      new OpenStore{std::move(served), std::move(client), protection});
  std::lock_guard lock(mutex_);
  stores_[url] = opened;
  return opened;
}

Result<std::unique_ptr<World>> World::enter(Stores& stores, const WorldOptions& options,
                                            Deadline deadline) {
  if (options.rank && *options.rank >= options.size) {
    return error(Code::invalidArgument, "rank {} cannot be: the world has {} ranks, from 0",
                 *options.rank, options.size);
  }
  HMC_ASSIGN(auto store, stores.open(options.url, options.serve, options.protection, deadline));
  HMC_ASSIGN(std::string listen, listenAddressFor(options.url));
  std::unique_ptr<store::Group> group;
  std::optional<uint32_t> rank = options.rank;
  if (options.serveOnly) {
    rank.reset();
  } else if (!rank) {
    store::GroupOptions wanted;
    wanted.name = "world";
    wanted.capacity = options.size;
    wanted.ttl = kRankLease;
    HMC_ASSIGN(group, store::Group::join(store->client, wanted, deadline));
    rank = group->self().rank;
  }
  return std::unique_ptr<World>(
      new World(options, std::move(store), std::move(listen), std::move(group), rank));
}

World::World(WorldOptions options, std::shared_ptr<OpenStore> store, std::string listen,
             std::unique_ptr<store::Group> group, std::optional<uint32_t> rank)
    : options_(std::move(options)),
      store_(std::move(store)),
      listen_(std::move(listen)),
      group_(std::move(group)),
      rank_(rank) {}

Result<Device> deviceNumber(uint32_t index) {
  const auto found = accelerators();
  if (found.empty()) return Device{};
  uint32_t before = 0;
  for (const Backend* backend : found) {
    const auto count = static_cast<uint32_t>(backend->facts().deviceCount());
    if (index < before + count) {
      return Device{backend->facts().kind, static_cast<int>(index - before)};
    }
    before += count;
  }
  return error(Code::invalidArgument, "device {} cannot be: this machine has {}, from 0", index,
               before);
}

}  // namespace hmc::pool
