#include "transport/ucx/service.h"

#include <poll.h>

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "transport/ucx/lanes.h"

namespace hmc::ucx {

namespace {

constexpr std::chrono::microseconds kServiceSpin{50};

constexpr std::chrono::milliseconds kLastHellos{2000};
// How long our end waits for hellos of services that may have never heard of us.
constexpr std::chrono::milliseconds kUnmetHellos{200};
// How often what is draining is polled: the loop does not watch its descriptors.
constexpr std::chrono::milliseconds kDrainingStep{1};

// When a process dies, the kernel closes its sockets at once; UCX 1.13 reports that with the same
// status as a peer that was silent for this long.
constexpr std::chrono::milliseconds kTcpSilence{10000};

constexpr unsigned kControlMessage = 0;  // the only kind of active message between services

}  // namespace

// The service of a peer's transport, which all links to that peer share. Its endpoint stays until
// it fails: UCX (1.13 to 1.22, over tcp) crashes on what arrives for one that was closed.
struct Service::PeerService final : EndpointOwner {
  explicit PeerService(bool& flag) : changed(flag) {}
  void endpointFailed(ucs_status_t status) override {
    lost = status;
    changed = true;
  }

  bool& changed;
  ucp_ep_h endpoint = nullptr;
  std::string lane;
  ucs_status_t lost = UCS_OK;
  const uint64_t number = randomU64();  // what its answer to our hello calls it
  bool answered = false;                // our last hello
};

// What a peer asks of us over one link is served by `target`.
struct Service::ServedLink {
  Member& member;
  const std::shared_ptr<Lease> lease;
  std::unique_ptr<Target> target;  // none once we have left
  std::unique_ptr<Loop::Watch> watch;
  PeerService* peer = nullptr;  // none before connect(), or when it is lost
  uint64_t peerLink = 0;        // the peer's number of this link
  bool announced = false;
  bool expected = false;  // the peer has answered the announcement
  bool saidGoodbye = false;
};

Result<std::unique_ptr<Service>> Service::create(Context& context, Exports& exports,
                                                 Draining& draining) {
  std::unique_ptr<Service> service(new Service(context, exports, draining));
  HMC_TRY(service->Worker::open(kControlMessage, *service));
  Loop::BusyPoll busy;
  busy.beforeSleep = [raw = service.get()] { return raw->readyToSleep(); };
  HMC_ASSIGN(service->loop_, Loop::create("hmc-ucx", std::move(busy)));
  HMC_TRY(service->call([&] { return service->start(); }));
  return service;
}

Service::Service(Context& context, Exports& exports, Draining& draining)
    : Worker(context), context_(context), exports_(exports), draining_(draining) {}

Status Service::start() {
  HMC_ASSIGN(watch_, loop_->watch(fd(), EPOLLIN, [this](uint32_t) { polled_ = true; }));
  timer_ = std::make_unique<Loop::Timer>(*loop_);
  --callers_;
  return Status();
}

Service::~Service() {
  if (!loop_) return;
  loop_->stop();
  const Deadline deadline = kLastHellos;
  const Deadline unmet = kUnmetHellos;
  while ((!settled() && !unmet.passed()) || !peersAnswered() || draining_.step()) {
    if (deadline.passed()) break;
    pollfd waiting{fd(), POLLIN, 0};
    if (!step()) ::poll(&waiting, 1, kDrainingStep.count());
  }
  if (!settled()) abandon();
}

Status Service::call(const std::function<Status()>& task) {
  Status status;
  ++callers_;
  loop_->run([&] {
    --callers_;
    status = task();
  });
  return status;
}

Service::ServedLink* Service::find(uint64_t link) {
  auto found = links_.find(link);
  return found == links_.end() ? nullptr : found->second.get();
}

Result<std::string> Service::open(uint64_t number, Member& member, std::shared_ptr<Lease> lease) {
  HMC_ASSIGN(auto target, Target::create(context_, exports_, lease));
  std::string address = target->address();
  HMC_TRY(call([&] {
    auto link = std::make_unique<ServedLink>(ServedLink{member, lease, std::move(target)});
    auto startPolling = [this, raw = link.get()](uint32_t) {
      if (std::find(polledLinks_.begin(), polledLinks_.end(), raw) == polledLinks_.end())
        polledLinks_.push_back(raw);
    };
    HMC_ASSIGN(link->watch, loop_->watch(link->target->fd(), EPOLLIN, startPolling));
    startPolling(0);
    links_[number] = std::move(link);
    unmet_.insert(number);
    return Status();
  }));
  return address;
}

Status Service::connect(uint64_t number, const Address& peer) {
  return call([&] {
    ServedLink* link = find(number);
    if (!link) return error(Code::disconnected, "this ucx link is closed");
    HMC_ASSIGN(link->peer, reach(peer.control));
    link->peerLink = peer.link;
    send(link->peer->endpoint, ServiceKind::hello, link->peer->number, link->peerLink);
    if (!link->target) leave(*link);
    return Status();
  });
}

Status Service::announce(uint64_t number, Deadline deadline) {
  while (true) {
    bool expected = false;
    uint64_t seen = 0;
    HMC_TRY(call([&] {
      ServedLink* link = find(number);
      if (!link || !link->peer || !link->target) {
        return error(Code::disconnected, "the peer of this ucx link is gone");
      }
      if (!std::exchange(link->announced, true)) {
        send(link->peer->endpoint, ServiceKind::announcement, number, link->peerLink);
      }
      expected = link->expected;
      seen = changes_;
      return Status();
    }));
    if (expected) return Status();
    std::unique_lock lock(mutex_);
    if (!changed_.wait_until(lock, deadline.at(), [&] { return changes_ != seen; })) {
      return error(Code::deadlineExceeded, "the peer's ucx service did not answer in time");
    }
  }
}

void Service::leave(uint64_t number) {
  call([&] {
    if (ServedLink* link = find(number)) leave(*link);
    return Status();
  });
}

void Service::leaveSoon(uint64_t number) {
  ++callers_;
  loop_->post([this, number] {
    --callers_;
    if (ServedLink* link = find(number)) leave(*link);
  });
}

void Service::leave(ServedLink& link) {
  if (link.target) {
    link.watch.reset();
    std::erase(polledLinks_, &link);
    link.target->refuse();
    if (!link.target->settled()) draining_.add(std::move(link.target), kLastHellos);
    link.target.reset();
    peerChanged_ = true;
  }
  if (!link.peer || std::exchange(link.saidGoodbye, true)) return;
  send(link.peer->endpoint, ServiceKind::goodbye, 0, link.peerLink);
}

void Service::remove(uint64_t number) {
  call([&] {
    if (ServedLink* link = find(number)) leave(*link);
    links_.erase(number);
    return Status();
  });
}

// The service at that address.
Result<Service::PeerService*> Service::reach(const std::string& address) {
  std::unique_ptr<PeerService>& known = peers_[address];
  if (!known) {
    auto made = std::make_unique<PeerService>(peerChanged_);
    auto endpoint = Worker::connect(address, *made);
    if (!endpoint.ok()) {
      peers_.erase(address);
      return endpoint.status();
    }
    made->endpoint = *endpoint;
    made->lane = laneOf(api(), made->endpoint);
    known = std::move(made);
  }
  return known.get();
}

void Service::send(ucp_ep_h endpoint, ServiceKind kind, uint64_t number, uint64_t link) {
  post(endpoint, kControlMessage, ServiceMessage{kind, number, link}.encode());
  polled_ = true;
}

// No honest peer sends what cannot be decoded.
void Service::received(const Message& message) {
  const auto said = ServiceMessage::decode(message.header);
  if (!said.ok()) return;
  switch (said->kind) {
    case ServiceKind::hello:
      unmet_.erase(said->link);
      if (message.replyTo) send(message.replyTo, ServiceKind::helloAnswer, said->number);
      return;
    case ServiceKind::helloAnswer:
      for (auto& [address, peer] : peers_) {
        if (peer->number == said->number) peer->answered = true;
      }
      peerChanged_ = true;
      return;
    case ServiceKind::goodbye:
      goodbyes_.push_back(said->link);
      return;
    case ServiceKind::announcement: {
      ServedLink* ours = find(said->link);
      if (!ours || !ours->target || !message.replyTo) return;
      ours->target->expectHello();
      send(message.replyTo, ServiceKind::expected, 0, said->number);
      return;
    }
    case ServiceKind::expected:
      if (ServedLink* ours = find(said->link)) ours->expected = true;
      peerChanged_ = true;
      return;
  }
}

bool Service::settled() const {
  return peersAnswered() && unmet_.empty();
}

bool Service::peersAnswered() const {
  return std::all_of(peers_.begin(), peers_.end(), [](const auto& entry) {
    return entry.second->answered || entry.second->lost != UCS_OK;
  });
}

void Service::takeGoodbyes() {
  for (const uint64_t number : std::exchange(goodbyes_, {})) {
    ServedLink* link = find(number);
    if (!link) continue;
    leave(*link);
    link->member.peerLeft(error(Code::disconnected, "the peer closed this ucx link"), true);
  }
}

void Service::dropLost() {
  for (auto& [number, link] : links_) {
    PeerService* peer = link->peer;
    if (!peer || peer->lost == UCS_OK) continue;
    link->peer = nullptr;
    unmet_.erase(number);
    leave(*link);
    const bool byTcp = isTcp(peer->lane) && link->lease->length() <= kTcpSilence;
    link->member.peerLeft(error(Code::disconnected, "lost the peer's ucx service over {}: {}",
                                peer->lane, context_.api().text(peer->lost)),
                          byTcp || peer->lost == UCS_ERR_CONNECTION_RESET);
  }
  std::erase_if(peers_, [&](const auto& entry) {
    if (entry.second->lost == UCS_OK) return false;
    drop(entry.second->endpoint);
    return true;
  });
}

bool Service::step() {
  bool moved = polled_ && progress();
  for (size_t i = 0; i < polledLinks_.size(); ++i) {
    ServedLink& link = *polledLinks_[i];
    // leave() takes the link out of the list: the one after it has its turn in the next step.
    if (link.target->expired()) {
      leave(link);
    } else {
      moved = link.target->progress() || moved;
    }
  }
  if (!goodbyes_.empty()) takeGoodbyes();
  if (std::exchange(peerChanged_, false)) {
    dropLost();
    std::lock_guard lock(mutex_);
    ++changes_;
    changed_.notify_all();
  }
  return moved;
}

bool Service::armAll() {
  if (polled_) polled_ = !arm();
  std::erase_if(polledLinks_,
                [&](ServedLink* link) { return !link->target->expired() && link->target->arm(); });
  return !polled_ && polledLinks_.empty() && goodbyes_.empty() && !peerChanged_;
}

// The loop sleeps when this says so. Its tasks run only then, so callers must not wait for an end
// of the traffic.
bool Service::readyToSleep() {
  if (callers_ > 0) return true;
  const bool moved = step();
  const auto now = Clock::now();
  if (moved) lastTraffic_ = now;
  // Requests come in bursts: sleeping between two of them adds a wake-up to each.
  if (now - lastTraffic_ < kServiceSpin || !armAll()) return false;
  if (draining_.step()) timer_->after(kDrainingStep, [] {});
  return true;
}

}  // namespace hmc::ucx
