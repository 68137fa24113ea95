#include "agent/agent.h"

#include "base/error.h"
#include "base/random.h"
#include "pool/local_address.h"

namespace hmc::agent {

namespace {

// A process that the store has not heard of for so long is gone.
constexpr std::chrono::milliseconds kLease{5000};

// Does the agent of that record live? One that was killed left its record behind.
bool answers(Node& node, const std::string& id, const std::string& record) {
  const auto known = Record::decode(record);
  if (!known.ok()) return false;
  const auto peer = node.connectOnce(known->address, kLease);
  if (peer.ok()) return peer->name() == id;
  return peer.status().code() != Code::disconnected;
}

}  // namespace

Result<std::unique_ptr<Agent>> Agent::create(pool::Stores& stores, const AgentOptions& options) {
  const Deadline deadline(options.timeout);
  HMC_TRY(checkId(options.id));
  HMC_ASSIGN(auto store, stores.open(options.store, options.serve, options.protection, deadline));
  HMC_ASSIGN(const auto listen, pool::listenAddressFor(options.store));
  NodeOptions nodeOptions;
  nodeOptions.name = options.id;
  nodeOptions.insecure = true;  // MemFabric's manuals know no secret
  nodeOptions.tls = options.protection.peers;
  HMC_ASSIGN(Node node, Node::create(nodeOptions));
  Record record;
  HMC_ASSIGN(record.address, node.listen(listen));
  record.incarnation = hex(randomBytes(16));
  HMC_ASSIGN(auto lease, store->client->lease(kLease, deadline));
  HMC_TRY(claim(*store->client, node, options.id, record, lease, deadline));
  return std::unique_ptr<Agent>(
      new Agent(options, std::move(store), std::move(node), std::move(record), std::move(lease)));
}

Status Agent::claim(store::Store& store, Node& node, const std::string& id, const Record& record,
                    const std::shared_ptr<store::KeyLease>& lease, Deadline deadline) {
  std::optional<std::string> dead;
  for (;;) {
    HMC_ASSIGN(const auto swap,
               store.compareAndSet(recordKey(id), dead, record.encode(), deadline, lease));
    if (swap.done) return Status();
    dead = swap.found;
    if (dead && answers(node, id, *dead)) {
      return error(Code::alreadyExists, "another engine has the id {}: each needs its own", id);
    }
  }
}

Agent::Agent(AgentOptions options, std::shared_ptr<pool::OpenStore> store, Node node, Record record,
             std::shared_ptr<store::KeyLease> lease)
    : options_(std::move(options)),
      store_(std::move(store)),
      node_(std::move(node)),
      record_(std::move(record)),
      lease_(std::move(lease)) {}

Agent::~Agent() {
  // Peers find nothing any more, and then nothing of what they have found works.
  if (lease_->status().code() != Code::disconnected) (void)lease_->revoke(kLease);
  const Deadline deadline(options_.timeout);
  for (Ticket& ticket : submitted_) {
    if (!ticket.wait(deadline.left()).ok() && !ticket.over()) (void)ticket.cancel();
  }
  remotes_.clear();
  for (auto& [begin, range] : memory_) (void)range.value.region->revoke(options_.timeout);
}

RemoteAgent& Agent::remoteAgent(const std::string& id) {
  const std::lock_guard lock(remotesMutex_);
  auto& remote = remotes_[id];
  if (!remote) remote = std::make_unique<RemoteAgent>(node_, store_->client, id);
  return *remote;
}

}  // namespace hmc::agent
