#include "transport/ucx/service.h"

#include <poll.h>

#include <algorithm>

#include "base/error.h"
#include "transport/ucx/lanes.h"

namespace hmc::ucx {

namespace {

constexpr std::chrono::microseconds kServiceSpin{50};

constexpr std::chrono::seconds kLastHellos{2};
// How long a target stays for a hello: whether the peer sends one we do not know.
constexpr std::chrono::milliseconds kLastHello{100};
// How often what is draining is polled: the loop does not watch its descriptors.
constexpr std::chrono::milliseconds kDrainingStep{1};

// When a process dies, the kernel closes its sockets at once; UCX 1.13 reports that with the same
// status as a peer that was silent for this long.
constexpr std::chrono::milliseconds kTcpSilence{10000};

}  // namespace

// What a peer asks of us over one link is served by `target`.
struct Service::ServedLink {
  Member& member;
  const std::shared_ptr<Lease> lease;
  std::unique_ptr<Target> target;  // none once we have left
  std::unique_ptr<Loop::Watch> watch;
  PeerService* peer = nullptr;  // none before connect(), or when it is lost
  uint64_t peerLink = 0;        // the peer's number of this link
  bool saidGoodbye = false;
};

Result<std::unique_ptr<Service>> Service::create(Context& context, Exports& exports,
                                                 Draining& draining) {
  HMC_ASSIGN(auto control, ControlWorker::create(context));
  std::unique_ptr<Service> service(new Service(context, exports, draining, std::move(control)));
  Service* const raw = service.get();
  Loop::BusyPoll busy;
  busy.beforeSleep = [raw] { return raw->readyToSleep(); };
  HMC_ASSIGN(service->loop_, Loop::create("hmc-ucx", std::move(busy)));
  Status status;
  service->loop_->run([&] {
    auto watch = raw->loop_->watch(raw->control_->fd(), EPOLLIN,
                                   [raw](uint32_t) { raw->pollsControl_ = true; });
    status = watch.status();
    if (!status.ok()) return;
    raw->watch_ = *std::move(watch);
    raw->timer_ = std::make_unique<Loop::Timer>(*raw->loop_);
    --raw->callers_;
  });
  HMC_TRY(status);
  return service;
}

Service::Service(Context& context, Exports& exports, Draining& draining,
                 std::unique_ptr<ControlWorker> control)
    : context_(context), exports_(exports), draining_(draining), control_(std::move(control)) {}

Service::~Service() {
  if (!loop_) return;
  loop_->stop();
  const Deadline deadline = kLastHellos;
  while ((!control_->settled() || draining_.step()) && !deadline.passed()) {
    pollfd waiting{control_->fd(), POLLIN, 0};
    if (!step()) ::poll(&waiting, 1, kDrainingStep.count());
  }
}

void Service::call(const Loop::Task& task) {
  ++callers_;
  loop_->run([&] {
    --callers_;
    task();
  });
}

Service::ServedLink* Service::find(uint64_t link) {
  auto found = links_.find(link);
  return found == links_.end() ? nullptr : found->second.get();
}

Result<std::string> Service::open(uint64_t number, Member& member, std::shared_ptr<Lease> lease) {
  HMC_ASSIGN(auto target, Target::create(context_, exports_, lease));
  std::string address = target->address();
  Status status;
  call([&] {
    auto link = std::make_unique<ServedLink>(ServedLink{member, lease, std::move(target)});
    auto watch = loop_->watch(link->target->fd(), EPOLLIN, [this, raw = link.get()](uint32_t) {
      if (std::find(polled_.begin(), polled_.end(), raw) == polled_.end()) polled_.push_back(raw);
    });
    status = watch.status();
    if (!status.ok()) return;
    link->watch = *std::move(watch);
    polled_.push_back(link.get());
    links_[number] = std::move(link);
  });
  HMC_TRY(status);
  return address;
}

Status Service::connect(uint64_t number, const Address& peer) {
  Status status;
  call([&] {
    ServedLink* link = find(number);
    if (!link) {
      status = error(Code::disconnected, "this ucx link is closed");
      return;
    }
    auto service = control_->connect(peer.control);
    status = service.status();
    if (!status.ok()) return;
    link->peer = *service;
    link->peerLink = peer.link;
    pollsControl_ = true;
    if (!link->target) leave(*link);
  });
  return status;
}

Status Service::awaitPeer(uint64_t number, Deadline deadline) {
  while (true) {
    bool gone = false;
    bool answered = false;
    uint64_t seen = 0;
    call([&] {
      const ServedLink* link = find(number);
      gone = !link || !link->peer;
      answered = !gone && link->peer->answered;
      seen = changes_;
    });
    if (gone) return error(Code::disconnected, "the peer of this ucx link is gone");
    if (answered) return Status();
    std::unique_lock lock(mutex_);
    if (!changed_.wait_until(lock, deadline.at(), [&] { return changes_ != seen; })) {
      return error(Code::deadlineExceeded, "the peer's ucx service did not answer in time");
    }
  }
}

void Service::leave(uint64_t number) {
  call([&] {
    if (ServedLink* link = find(number)) leave(*link);
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
    std::erase(polled_, &link);
    link.target->refuse();
    if (link.peer && !link.target->settled()) {
      draining_.add(std::move(link.target), kLastHello);
    }
    link.target.reset();
  }
  if (!link.peer || std::exchange(link.saidGoodbye, true)) return;
  control_->sendGoodbye(*link.peer, link.peerLink);
  pollsControl_ = true;
}

void Service::remove(uint64_t number) {
  call([&] {
    if (ServedLink* link = find(number)) leave(*link);
    links_.erase(number);
  });
}

void Service::dropLost() {
  for (auto& [number, link] : links_) {
    PeerService* peer = link->peer;
    if (!peer || peer->lost == UCS_OK) continue;
    link->peer = nullptr;
    leave(*link);
    const bool byTcp = isTcp(peer->lane) && link->lease->length() <= kTcpSilence;
    link->member.peerLeft(error(Code::disconnected, "lost the peer's ucx service over {}: {}",
                                peer->lane, context_.api().text(peer->lost)),
                          byTcp || peer->lost == UCS_ERR_CONNECTION_RESET);
  }
  control_->dropLost();
}

bool Service::serve(ServedLink& link) {
  if (!link.target->expired()) return link.target->progress();
  leave(link);
  return false;
}

bool Service::step() {
  bool moved = pollsControl_ && control_->progress();
  for (size_t i = 0; i < polled_.size(); ++i) {
    // leave() takes the link out of the list: the one after it has its turn in the next step.
    moved = serve(*polled_[i]) || moved;
  }
  for (const uint64_t number : std::exchange(control_->goodbyes, {})) {
    ServedLink* link = find(number);
    if (!link) continue;
    leave(*link);
    link->member.peerLeft(error(Code::disconnected, "the peer closed this ucx link"), true);
  }
  if (std::exchange(control_->changed, false)) {
    dropLost();
    std::lock_guard lock(mutex_);
    ++changes_;
    changed_.notify_all();
  }
  return moved;
}

bool Service::armAll() {
  if (pollsControl_) pollsControl_ = !control_->arm();
  std::erase_if(polled_,
                [&](ServedLink* link) { return !link->target->expired() && link->target->arm(); });
  return !pollsControl_ && polled_.empty() && control_->goodbyes.empty() && !control_->changed;
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
