#include "store/server.h"

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/fork_guard.h"
#include "control/control.h"
#include "control/security.h"
#include "store/journal.h"
#include "store/state.h"
#include "store/wire.h"

namespace hmc::store {

namespace {

using control::Channel;
using ServedChannel = std::shared_ptr<Channel>;
using Clock = std::chrono::steady_clock;

// When our own timer is late by more, this process or its host was stopped.
constexpr std::chrono::milliseconds kStopped{1000};
// Of one client; enough for any use, and few enough for a client that runs wild.
constexpr size_t kMostParked = size_t{1} << 16;
constexpr size_t kMostLists = 64;

// Everything but start(), requests(), awaitNoClients() and the destructor is the control thread's.
class ServerImpl final : public Server, private control::ControlEvents {
 public:
  explicit ServerImpl(const ServerOptions& options) : state_(State::Limits{options.capacity}) {}
  ~ServerImpl() override;

  Status open(const std::string& address, const ServerOptions& options);
  const std::string& address() const override { return address_; }
  uint64_t requests() const override { return requests_.load(std::memory_order_relaxed); }
  bool awaitNoClients(Deadline deadline) override;

 private:
  // A list that did not fit into one answer.
  struct Listed {
    std::vector<Record> records;
    size_t next = 0;
  };
  struct Session {
    std::map<uint64_t, uint64_t> awaits;   // the client's id to ours
    std::map<uint64_t, uint64_t> watches;  // the same
    std::map<uint64_t, Listed> lists;      // by cursor
  };
  struct ParkedAwait {
    Channel* channel;
    uint64_t clientId;
    Channel::Answered reply;
  };

  Status joined(const ServedChannel& channel) override;
  Status joinedAgain(const ServedChannel&, const std::string&) override { return Status(); }
  void left(const ServedChannel& channel, const Status& why) override;
  void answer(const ServedChannel& channel, uint16_t method, std::string_view request,
              Channel::Answered reply) override;
  void note(const ServedChannel&, std::string) override {}

  Result<std::string> carryOut(Session& session, const Request& request);
  Result<std::string> setOrClaim(const Request& request);
  Result<std::string> keepAlive(const Request& request);
  Result<std::string> list(Session& session, const Request& request);
  Result<std::string> more(Session& session, uint64_t cursor);
  void await(Channel* channel, Session& session, const Request& request, Channel::Answered reply);
  void forget(Session& session, uint64_t clientId);
  void watch(Session& session, const Request& request, const Channel::Answered& reply);
  void watchNext(Session& session, uint64_t clientId, Channel::Answered reply);
  void unwatch(Session& session, uint64_t clientId);
  // Answers those who waited for what the last request or the clock has changed.
  void settle();
  void answerWatch(uint64_t id);
  void setTimer();
  void expire();
  void countClients();

  const ForkGuard fork_;
  std::string address_;
  State state_;
  std::unique_ptr<Journal> journal_;  // none: nothing outlives this server
  std::map<Channel*, Session> sessions_;
  std::map<uint64_t, ParkedAwait> awaits_;
  std::map<uint64_t, Channel::Answered> watches_;  // who waits for the next changes of a watch
  uint64_t lastId_ = 0;
  std::atomic<uint64_t> requests_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t clients_ = 0;  // guarded by mutex_: how many sessions there are
  std::optional<Clock::time_point> timerAt_;
  std::unique_ptr<Loop::Timer> timer_;
  std::unique_ptr<control::Control> control_;
};

Status ServerImpl::open(const std::string& address, const ServerOptions& options) {
  if (!options.data.empty()) {
    HMC_ASSIGN(journal_, Journal::open(options.data, state_, Clock::now()));
  }
  control::ControlOptions control;
  control.name = "the store";
  control.secret = options.secret;
  control.insecure = options.insecure;
  HMC_TRY(control::addDefaults(control, options.tls));
  HMC_ASSIGN(control_, control::Control::create(control, *this));
  control_->setAttributes(std::string(kProtocol));
  timer_ = std::make_unique<Loop::Timer>(control_->loop());
  HMC_ASSIGN(address_, control_->listen(address));
  return Status();
}

ServerImpl::~ServerImpl() {
  if (fork_.inChild()) {
    (void)timer_.release();
    (void)control_.release();
    (void)journal_.release();
    return;
  }
  if (!control_) return;
  control_->loop().run([this] { timer_.reset(); });
  control_.reset();
}

Status ServerImpl::joined(const ServedChannel& channel) {
  if (channel->peer().attributes != kProtocol) {
    return error(Code::unsupported, "this is a store that speaks {}, and {} is no client of it",
                 kProtocol, channel->peer().name.empty() ? "the peer" : channel->peer().name);
  }
  sessions_[channel.get()];
  countClients();
  return Status();
}

// The client's keys stay until its leases end: it may come back.
void ServerImpl::left(const ServedChannel& channel, const Status&) {
  const auto found = sessions_.find(channel.get());
  if (found == sessions_.end()) return;
  Session& session = found->second;
  while (!session.awaits.empty()) forget(session, session.awaits.begin()->first);
  while (!session.watches.empty()) unwatch(session, session.watches.begin()->first);
  sessions_.erase(found);
  countClients();
}

void ServerImpl::countClients() {
  std::lock_guard lock(mutex_);
  clients_ = sessions_.size();
  changed_.notify_all();
}

bool ServerImpl::awaitNoClients(Deadline deadline) {
  if (fork_.inChild()) return true;  // they are the parent's
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline.at(), [this] { return clients_ == 0; });
}

void ServerImpl::answer(const ServedChannel& channel, uint16_t method, std::string_view bytes,
                        Channel::Answered reply) {
  requests_.fetch_add(1, std::memory_order_relaxed);
  auto decoded = decodeRequest(method, bytes);
  if (!decoded.ok()) return reply(decoded.status());
  const Request& request = *decoded;
  Session& session = sessions_[channel.get()];
  switch (request.op) {
    case Op::await:
      return await(channel.get(), session, request, std::move(reply));
    case Op::watch:
      return watch(session, request, reply);
    case Op::watchNext:
      return watchNext(session, request.id, std::move(reply));
    default: {
      auto result = carryOut(session, request);
      // Nobody hears of what a restarted server would not know.
      Status kept = journal_ ? journal_->commit() : Status();
      if (!kept.ok()) result = std::move(kept);
      reply(std::move(result));
      settle();
    }
  }
}

Result<std::string> ServerImpl::carryOut(Session& session, const Request& request) {
  const std::string& key = request.key;
  switch (request.op) {
    case Op::get: {
      const Bytes value = state_.get(key);
      if (!value) return error(Code::notFound, "the store has no key {}", key);
      return *value;
    }
    case Op::list:
      return list(session, request);
    case Op::more:
      return more(session, request.id);
    case Op::set:
    case Op::compareAndSet:
    case Op::claim:
      return setOrClaim(request);
    case Op::add: {
      HMC_ASSIGN(const int64_t sum, state_.add(key, request.amount));
      return encodeNumber(static_cast<uint64_t>(sum));
    }
    case Op::append: {
      HMC_ASSIGN(const uint64_t size, state_.append(key, *request.value));
      return encodeNumber(size);
    }
    case Op::remove:
      state_.remove(key);
      break;
    case Op::removeAll:
      state_.removeAll(key);
      break;
    case Op::grant:
      HMC_TRY(state_.grant(request.leases.front(), request.ttl, Clock::now()));
      break;
    case Op::keepAlive:
      return keepAlive(request);
    case Op::revoke:
      state_.revoke(request.leases.front());
      break;
    case Op::forget:
      forget(session, request.id);
      break;
    case Op::unwatch:
      unwatch(session, request.id);
      break;
    default:
      return error(Code::unsupported, "the store knows no request of kind {}",
                   static_cast<int>(request.op));
  }
  return std::string();
}

Result<std::string> ServerImpl::setOrClaim(const Request& request) {
  const uint64_t lease = request.leases.front();
  if (request.op == Op::set) {
    HMC_TRY(state_.set(request.key, *request.value, lease));
    return std::string();
  }
  auto swap = request.op == Op::claim
                  ? state_.claim(request.key, *request.value, lease)
                  : state_.compareAndSet(request.key, request.expected, request.value, lease);
  if (!swap.ok()) return swap.status();
  return encodeSwap(*swap);
}

Result<std::string> ServerImpl::keepAlive(const Request& request) {
  std::vector<uint64_t> lost;
  const auto now = Clock::now();
  for (uint64_t lease : request.leases) {
    if (!state_.keepAlive(lease, now)) lost.push_back(lease);
  }
  return encodeIds(lost);
}

Result<std::string> ServerImpl::list(Session& session, const Request& request) {
  std::vector<Record> records = state_.list(request.key);
  const uint64_t cursor = ++lastId_;
  size_t taken = 0;
  std::string answer = encodePage(records, 0, cursor, taken);
  if (taken == records.size()) return answer;
  session.lists.emplace(cursor, Listed{std::move(records), taken});
  if (session.lists.size() > kMostLists) session.lists.erase(session.lists.begin());
  return answer;
}

Result<std::string> ServerImpl::more(Session& session, uint64_t cursor) {
  const auto found = session.lists.find(cursor);
  if (found == session.lists.end()) {
    return error(Code::notFound, "the store has no list {} to go on with: at most {} can be open",
                 cursor, kMostLists);
  }
  Listed& listed = found->second;
  size_t taken = 0;
  std::string answer = encodePage(listed.records, listed.next, cursor, taken);
  listed.next += taken;
  if (listed.next == listed.records.size()) session.lists.erase(found);
  return answer;
}

void ServerImpl::await(Channel* channel, Session& session, const Request& request,
                       Channel::Answered reply) {
  if (session.awaits.size() >= kMostParked || session.awaits.count(request.id) > 0) {
    return reply(error(Code::exhausted, "await {} of one client: {} at once are the most",
                       session.awaits.size() + 1, kMostParked));
  }
  const uint64_t id = ++lastId_;
  if (const Bytes value = state_.await(request.key, id)) return reply(*value);
  session.awaits.emplace(request.id, id);
  awaits_.emplace(id, ParkedAwait{channel, request.id, std::move(reply)});
}

void ServerImpl::forget(Session& session, uint64_t clientId) {
  const auto found = session.awaits.find(clientId);
  if (found == session.awaits.end()) return;
  state_.forget(found->second);
  awaits_.erase(found->second);
  session.awaits.erase(found);
}

void ServerImpl::watch(Session& session, const Request& request, const Channel::Answered& reply) {
  unwatch(session, request.id);
  if (session.watches.size() >= kMostParked) {
    return reply(error(Code::exhausted, "watch {} of one client: {} at once are the most",
                       session.watches.size() + 1, kMostParked));
  }
  const uint64_t id = ++lastId_;
  session.watches.emplace(request.id, id);
  state_.watch(id, request.key);
  watches_.emplace(id, reply);
  answerWatch(id);
}

void ServerImpl::watchNext(Session& session, uint64_t clientId, Channel::Answered reply) {
  const auto found = session.watches.find(clientId);
  if (found == session.watches.end()) {
    return reply(error(Code::notFound, "the store has no watch {} of this client", clientId));
  }
  watches_[found->second] = std::move(reply);
  answerWatch(found->second);
}

void ServerImpl::unwatch(Session& session, uint64_t clientId) {
  const auto found = session.watches.find(clientId);
  if (found == session.watches.end()) return;
  state_.unwatch(found->second);
  const auto waiting = watches_.extract(found->second);
  session.watches.erase(found);
  // The client keeps its question until it is answered.
  if (waiting) waiting.mapped()(error(Code::cancelled, "the watch {} was closed", clientId));
}

void ServerImpl::answerWatch(uint64_t id) {
  const auto found = watches_.find(id);
  if (found == watches_.end()) return;
  auto events = state_.take(id, kPartSize);
  if (events.ok() && events->empty()) return;
  const Channel::Answered reply = std::move(found->second);
  watches_.erase(found);
  if (events.ok()) {
    reply(encodeChanges(*events));
  } else {
    reply(events.status());
  }
}

void ServerImpl::settle() {
  State::Woken woken = state_.takeWoken();
  for (const auto& [id, value] : woken.awaits) {
    const auto found = awaits_.find(id);
    if (found == awaits_.end()) continue;
    const ParkedAwait parked = std::move(found->second);
    awaits_.erase(found);
    sessions_[parked.channel].awaits.erase(parked.clientId);
    parked.reply(*value);
  }
  for (uint64_t id : woken.watches) answerWatch(id);
  setTimer();
}

void ServerImpl::setTimer() {
  const auto next = state_.nextExpiry();
  if (!next || (timerAt_ && *timerAt_ <= *next)) return;
  timerAt_ = *next;
  timer_->after(std::chrono::milliseconds(Deadline(*next).leftMs()), [this] { expire(); });
}

void ServerImpl::expire() {
  const auto late = Clock::now() - *timerAt_;
  timerAt_.reset();
  // What the clients said meanwhile is still unread, so their leases get the time back.
  if (late > kStopped) state_.postpone(late);
  state_.expire(Clock::now());
  // Should it fail, then these leases end once more after a restart.
  if (journal_) (void)journal_->commit();
  settle();
}

}  // namespace

Result<std::unique_ptr<Server>> Server::start(const std::string& address,
                                              const ServerOptions& options) {
  auto server = std::make_unique<ServerImpl>(options);
  HMC_TRY(server->open(address, options));
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace hmc::store
