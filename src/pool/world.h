#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "hmc/deadline.h"
#include "hmc/device.h"
#include "hmc/result.h"
#include "hmc/tls.h"
#include "pool/served_store.h"
#include "store/group.h"
#include "store/store.h"

namespace hmc::pool {

// Who serves a store.
enum class Serve : uint8_t {
  no,      // somebody else
  ifFree,  // this process if nobody does yet and the address is one of this host
  yes,     // the same, but an address that is not of this host is an error
};

// Whether connections to the store, and those between processes, are encrypted.
struct Protection {
  TlsOptions store;
  TlsOptions peers;
};
bool operator==(const Protection& left, const Protection& right);

// A store that this process uses, and serves if nobody else did.
struct OpenStore {
  const std::shared_ptr<ServedStore> served;  // may be null; ends after the client
  const std::shared_ptr<store::Store> client;
  const Protection protection;
};

// "tcp://10.0.0.1:7000": an IPv4 address of one host, or an IPv6 address in brackets, and a port of
// 1025 to 65535. The sentence names the part that is wrong.
Status checkStoreUrl(const std::string& url);

// The stores of this process: for each URL one client and at most one server, while anybody uses
// them. Safe from any thread.
class Stores {
 public:
  // One that is open stays as protected as it is: asking for something else is an error.
  Result<std::shared_ptr<OpenStore>> open(const std::string& url, Serve serve,
                                          const Protection& protection, Deadline deadline);
  // A server alone, for other processes; ends with the handle. alreadyExists when somebody listens
  // there.
  Result<std::shared_ptr<ServedStore>> serve(const std::string& url, const TlsOptions& tls);
  // Is it served by this process?
  bool serves(const std::string& url);

 private:
  Result<std::shared_ptr<ServedStore>> serverFor(const std::string& url, Serve serve,
                                                 const TlsOptions& tls);

  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<OpenStore>> stores_;    // guarded by mutex_, by URL
  std::map<std::string, std::weak_ptr<ServedStore>> served_;  // guarded by mutex_, by URL
};

struct WorldOptions {
  std::string url;
  uint32_t size = 0;             // ranks are 0 to size - 1
  std::optional<uint32_t> rank;  // none: the lowest that is free
  Serve serve = Serve::no;
  bool serveOnly = false;  // take no rank
  Protection protection{};
};

// This process's place in a store: its rank there, until it is destroyed. Pools are made in it.
// Safe from any thread.
class World {
 public:
  static Result<std::unique_ptr<World>> enter(Stores& stores, const WorldOptions& options,
                                              Deadline deadline);

  const std::string& url() const { return options_.url; }
  uint32_t size() const { return options_.size; }
  // None with serveOnly.
  std::optional<uint32_t> rank() const { return rank_; }
  const std::shared_ptr<store::Store>& store() const { return store_->client; }
  // Of connections between the processes.
  const TlsOptions& tls() const { return store_->protection.peers; }
  // Where pools of this process listen.
  const std::string& listen() const { return listen_; }

 private:
  World(WorldOptions options, std::shared_ptr<OpenStore> store, std::string listen,
        std::unique_ptr<store::Group> group, std::optional<uint32_t> rank);

  const WorldOptions options_;
  const std::shared_ptr<OpenStore> store_;
  const std::string listen_;
  const std::unique_ptr<store::Group> group_;  // holds a rank that was chosen for us
  const std::optional<uint32_t> rank_;
};

// The accelerator of that index; the host on a machine without any, whatever the index is.
Result<Device> deviceNumber(uint32_t index);

}  // namespace hmc::pool
