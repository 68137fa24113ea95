#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "store/client.h"
#include "store/state.h"

// How a client keeps its leases and watches, over all connections that it makes.

namespace hmc::store {

namespace {

using Clock = Deadline::Clock;

// How long the connection's thread waits for one answer.
constexpr std::chrono::seconds kPatience{5};
constexpr std::chrono::milliseconds kRetry{100};

void post(const ChannelPtr& channel, const Request& request) {
  channel->ask(static_cast<uint16_t>(request.op), encode(request), [](const auto&) {});
}

Request grantRequest(const ClientLease& lease) {
  return {.op = Op::grant, .leases = {lease.id()}, .ttl = lease.ttl()};
}

Request revokeRequest(uint64_t lease) {
  return {.op = Op::revoke, .leases = {lease}};
}

// The server at the other end of a channel.
class ChannelLeases final : public LeaseServer {
 public:
  explicit ChannelLeases(ChannelPtr channel) : channel_(std::move(channel)) {}

  const std::string& incarnation() const override { return channel_->peer().id; }
  Status grant(const ClientLease& lease, Deadline deadline) override {
    return call(grantRequest(lease), deadline).status();
  }
  Result<bool> claim(const ClientLease& lease, const std::string& key, const std::string& value,
                     Deadline deadline) override {
    const Request request{.op = Op::claim, .key = key, .value = value, .leases = {lease.id()}};
    HMC_ASSIGN(const std::string answer, call(request, deadline));
    HMC_ASSIGN(const Swap swap, decodeSwap(answer));
    return swap.done;
  }
  void revoke(const ClientLease& lease) override { post(channel_, revokeRequest(lease.id())); }

 private:
  Result<std::string> call(const Request& request, Deadline deadline) {
    return channel_->call(static_cast<uint16_t>(request.op), encode(request), deadline);
  }

  const ChannelPtr channel_;
};

}  // namespace

class Client::KeyWatch final : public Watch {
 public:
  KeyWatch(std::shared_ptr<Client> client, uint64_t id, WatchPtr watch)
      : client_(std::move(client)), id_(id), watch_(std::move(watch)) {}
  ~KeyWatch() override { client_->drop(id_, *watch_); }

  Result<std::vector<Change>> next(Deadline deadline) override {
    if (client_->connection_->fork().inChild()) return ForkGuard::refusal();
    bool resume = false;
    auto changes = watch_->keys().next(deadline, resume);
    const ChannelPtr channel = resume ? client_->connection_->channel() : nullptr;
    if (channel) client_->askNext(channel, watch_);
    return changes;
  }
  int fd() const override { return watch_->keys().fd(); }

 private:
  const std::shared_ptr<Client> client_;
  const uint64_t id_;
  const WatchPtr watch_;
};

Client::~Client() {
  if (!connection_) return;
  // In a child its threads are not there: what they wait on cannot be destroyed.
  if (connection_->fork().inChild()) {
    (void)connection_.release();
    return;
  }
  // The threads use all the rest, connection_ as well.
  connection_->close();
}

// Should another server answer than the channel's, then the first look at the lease finds that out.
Result<std::string> Client::make(const ClientLease& lease, Deadline deadline) {
  HMC_ASSIGN(const ChannelPtr channel, connection_->waitForChannel(deadline));
  HMC_TRY(connection_->call(grantRequest(lease), Connection::Repeat::yes, deadline).status());
  return channel->peer().id;
}

Status Client::end(const ClientLease& lease, Deadline deadline) {
  return connection_->call(revokeRequest(lease.id()), Connection::Repeat::yes, deadline).status();
}

void Client::endLater(const ClientLease& lease) {
  if (const ChannelPtr channel = connection_->channel()) {
    return post(channel, revokeRequest(lease.id()));
  }
  {
    std::lock_guard lock(mutex_);
    toRevoke_.push_back(lease.id());
  }
  connection_->wake();
}

bool Client::holds(const ClientLease& lease) const {
  const ChannelPtr channel = connection_->channel();
  return channel && !lease.isLost(channel->peer().id);
}

Result<std::unique_ptr<Watch>> Client::watch(std::string_view prefix) {
  HMC_TRY(checkPrefix(prefix));
  if (forked()) return ForkGuard::refusal();
  HMC_ASSIGN(EventFd fd, EventFd::create("a watch of the store"));
  const uint64_t id = ++lastId_;
  auto made = std::make_shared<ClientWatch>(id, std::string(prefix), grace_, std::move(fd));
  {
    std::lock_guard lock(mutex_);
    watches_.emplace(id, made);
  }
  if (const ChannelPtr channel = connection_->channel()) openWatch(channel, made);
  return std::unique_ptr<Watch>(
      new KeyWatch(std::static_pointer_cast<Client>(shared_from_this()), id, std::move(made)));
}

void Client::drop(uint64_t watchId, const ClientWatch& watch) {
  if (forked()) return;
  {
    std::lock_guard lock(mutex_);
    watches_.erase(watchId);
  }
  if (const ChannelPtr channel = connection_->channel()) post(channel, watch.closeRequest());
}

void Client::openWatch(const ChannelPtr& channel, const WatchPtr& watch) {
  if (!watch->begin(channel)) return;
  channel->ask(static_cast<uint16_t>(Op::watch), encode(watch->openRequest()),
               [this, channel, watch](const Result<std::string>& answer) {
                 watchAnswered(channel, watch, answer);
               });
}

void Client::askNext(const ChannelPtr& channel, const WatchPtr& watch) {
  channel->ask(static_cast<uint16_t>(Op::watchNext), encode(watch->nextRequest()),
               [this, channel, watch](const Result<std::string>& answer) {
                 watchAnswered(channel, watch, answer);
               });
}

// On the control thread. The connection's thread begins the watch anew when the channel has ended.
void Client::watchAnswered(const ChannelPtr& channel, const WatchPtr& watch,
                           const Result<std::string>& answer) {
  if (!answer.ok()) {
    if (!channel->status().ok() || answer.status().code() == Code::cancelled) return;
    if (answer.status().code() != Code::notFound) return watch->keys().fail(answer.status());
    watch->setLost();
    return connection_->wake();
  }
  auto changes = decodeChanges(*answer);
  if (!changes.ok()) return watch->keys().fail(changes.status());
  if (watch->take(channel, *std::move(changes))) askNext(channel, watch);
  if (watch->keys().hasOrphans()) connection_->wake();
}

// Leases come first: a watch that begins anew shall find our own keys.
Deadline Client::maintain(const ChannelPtr& channel) {
  std::vector<uint64_t> dropped;
  {
    std::lock_guard lock(mutex_);
    dropped.swap(toRevoke_);
  }
  for (uint64_t id : dropped) post(channel, revokeRequest(id));
  Deadline next = maintainLeases(channel);
  std::vector<WatchPtr> watches;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, watch] : watches_) watches.push_back(watch);
  }
  for (const WatchPtr& watch : watches) {
    openWatch(channel, watch);
    next = earlier(next, watch->keys().giveUpOrphans());
  }
  return next;
}

Deadline Client::maintainLeases(const ChannelPtr& channel) {
  const std::string& server = channel->peer().id;
  const std::vector<LeasePtr> all = leases();
  // A server that we were cut off from may have ended them meanwhile.
  const bool anew = std::exchange(maintained_, channel).lock() != channel;
  const auto now = Clock::now();
  if (anew || std::any_of(all.begin(), all.end(), [&](auto& it) { return it->due() <= now; })) {
    if (!keepAlive(channel, all).ok()) return kRetry;
  }
  Deadline next = Deadline::never();
  ChannelLeases keeper(channel);
  for (const LeasePtr& lease : all) {
    if (lease->isLost(server)) lease->restore(keeper, kPatience);
    if (lease->isLost(server)) next = earlier(next, kRetry);
    if (!lease->revoked()) next = earlier(next, Deadline(lease->due()));
  }
  return next;
}

Status Client::keepAlive(const ChannelPtr& channel, const std::vector<LeasePtr>& leases) {
  Request request{.op = Op::keepAlive};
  for (const LeasePtr& lease : leases) {
    if (!lease->revoked()) request.leases.push_back(lease->id());
  }
  if (request.leases.empty()) return Status();
  const auto now = Clock::now();
  HMC_ASSIGN(const std::string answer,
             channel->call(static_cast<uint16_t>(Op::keepAlive), encode(request), kPatience));
  HMC_ASSIGN(const auto lost, decodeIds(answer));
  for (const LeasePtr& lease : leases) {
    lease->setKeptAlive(now);
    if (std::find(lost.begin(), lost.end(), lease->id()) != lost.end()) lease->setLost();
  }
  return Status();
}

}  // namespace hmc::store
