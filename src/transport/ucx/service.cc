#include "transport/ucx/service.h"

#include <algorithm>

#include "base/error.h"
#include "base/thread.h"
#include "transport/ucx/lanes.h"

namespace hmc::ucx {

namespace {

constexpr std::chrono::microseconds kServiceSpin{50};
constexpr uint64_t kControlEvent = 1;  // links have random numbers above it

constexpr std::chrono::seconds kLastHellos{2};
// How often what is draining is polled: it has no descriptor in the set.
constexpr int kDrainingMs = 1;

// When a process dies, the kernel closes its sockets at once; UCX 1.13 reports that with the same
// status as a peer that was silent for this long.
constexpr std::chrono::milliseconds kTcpSilence{10000};

}  // namespace

// What a peer asks of us over one link is served by `target`.
struct Service::ServedLink {
  const uint64_t number;
  Member& member;
  const std::shared_ptr<Lease> lease;
  std::unique_ptr<Target> target;  // none once we have left
  PeerService* peer = nullptr;     // none before connect(), or when it is lost
  uint64_t peerLink = 0;           // the peer's number of this link
  bool saidGoodbye = false;
};

Result<std::unique_ptr<Service>> Service::create(Context& context, Exports& exports,
                                                 Draining& draining) {
  HMC_ASSIGN(EventSet events, EventSet::create("the ucx service"));
  HMC_ASSIGN(auto control, ControlWorker::create(context));
  HMC_TRY(events.add(control->fd(), kControlEvent));
  std::unique_ptr<Service> service(
      new Service(context, exports, draining, std::move(control), std::move(events)));
  service->thread_ =
      namedThread("hmc-ucx", [raw = service.get()](std::stop_token stop) { raw->run(stop); });
  return service;
}

Service::Service(Context& context, Exports& exports, Draining& draining,
                 std::unique_ptr<ControlWorker> control, EventSet events)
    : context_(context),
      exports_(exports),
      draining_(draining),
      events_(std::move(events)),
      control_(std::move(control)) {}

Service::~Service() {
  thread_.request_stop();
  events_.wake();
  thread_.join();
  const Deadline deadline = kLastHellos;
  while ((control_->awaitsAnswer() || draining_.step()) && !deadline.passed()) {
    if (!step()) events_.wait(kDrainingMs);
  }
}

std::unique_lock<std::mutex> Service::enter() {
  ++callers_;
  std::unique_lock lock(mutex_);
  --callers_;
  callers_.notify_all();
  return lock;
}

Service::ServedLink* Service::find(uint64_t link) {
  auto found = links_.find(link);
  return found == links_.end() ? nullptr : found->second.get();
}

Result<std::string> Service::open(uint64_t link, Member& member, std::shared_ptr<Lease> lease) {
  HMC_ASSIGN(auto target, Target::create(context_, exports_, lease));
  const std::string address = target->address();
  auto lock = enter();
  HMC_TRY(events_.add(target->fd(), link));
  links_[link] =
      std::make_unique<ServedLink>(ServedLink{link, member, std::move(lease), std::move(target)});
  polled_.push_back(link);
  events_.wake();
  return address;
}

Status Service::connect(uint64_t number, const Address& peer) {
  auto lock = enter();
  ServedLink* link = find(number);
  if (!link) return error(Code::disconnected, "this ucx link is closed");
  HMC_ASSIGN(link->peer, control_->connect(peer.control));
  link->peerLink = peer.link;
  controlSent();
  if (!link->target) leave(*link);
  return Status();
}

Status Service::awaitPeer(uint64_t number, Deadline deadline) {
  auto lock = enter();
  while (true) {
    ServedLink* link = find(number);
    if (!link || !link->peer) {
      return error(Code::disconnected, "the peer of this ucx link is gone");
    }
    if (link->peer->answered) return Status();
    if (changed_.wait_until(lock, deadline.at()) == std::cv_status::timeout) {
      return error(Code::deadlineExceeded, "the peer's ucx service did not answer in time");
    }
  }
}

void Service::controlSent() {
  pollsControl_ = true;
  events_.wake();
}

void Service::leave(uint64_t number) {
  auto lock = enter();
  if (ServedLink* link = find(number)) leave(*link);
}

void Service::leave(ServedLink& link) {
  if (link.target) {
    events_.remove(link.target->fd());
    std::erase(polled_, link.number);
    link.target->refuse();
    if (link.peer && !link.target->greeted()) draining_.add(std::move(link.target));
    link.target.reset();
  }
  if (!link.peer || std::exchange(link.saidGoodbye, true)) return;
  control_->sendGoodbye(*link.peer, link.peerLink);
  controlSent();
}

void Service::remove(uint64_t number) {
  auto lock = enter();
  if (ServedLink* link = find(number)) leave(*link);
  links_.erase(number);
}

void Service::noticeBroken() {
  anyBroken_ = true;
  events_.wake();
}

void Service::leaveBroken() {
  for (auto& [number, link] : links_) {
    if (link->target && link->member.broken()) leave(*link);
  }
}

void Service::takeGoodbyes() {
  for (const uint64_t number : control_->takeGoodbyes()) {
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
    leave(*link);
    const bool byTcp = isTcp(peer->lane) && link->lease->length() <= kTcpSilence;
    link->member.peerLeft(error(Code::disconnected, "lost the peer's ucx service over {}: {}",
                                peer->lane, context_.api().text(peer->lost)),
                          byTcp || peer->lost == UCS_ERR_CONNECTION_RESET);
  }
  control_->dropLost();
}

bool Service::serve(ServedLink& link) {
  if (!link.target->expired()) return link.target->serve();
  leave(link);
  return false;
}

bool Service::step() {
  bool moved = pollsControl_ && control_->progress();
  for (size_t i = 0; i < polled_.size(); ++i) {
    // leave() takes the link out of the list: the one after it has its turn in the next step.
    moved = serve(*links_.at(polled_[i])) || moved;
  }
  if (control_->hasGoodbyes()) takeGoodbyes();
  if (control_->takeChanged()) {
    dropLost();
    changed_.notify_all();
  }
  if (anyBroken_.exchange(false)) leaveBroken();
  return moved;
}

bool Service::armAll() {
  if (pollsControl_) pollsControl_ = !control_->arm();
  std::erase_if(polled_, [&](uint64_t number) {
    Target& target = *links_.at(number)->target;
    return !target.expired() && target.arm();
  });
  return !pollsControl_ && polled_.empty() && !control_->hasGoodbyes() && !control_->changed();
}

void Service::run(const std::stop_token& stop) {
  auto lastTraffic = Clock::time_point::min();
  while (!stop.stop_requested()) {
    for (int callers = callers_; callers > 0; callers = callers_) callers_.wait(callers);
    bool moved = false;
    {
      std::lock_guard lock(mutex_);
      moved = step();
    }
    const auto now = Clock::now();
    if (moved) lastTraffic = now;
    // Requests come in bursts: sleeping between two of them adds a wake-up to each.
    if (lastTraffic != Clock::time_point::min() && now - lastTraffic < kServiceSpin) continue;
    await();
  }
}

void Service::await() {
  {
    std::lock_guard lock(mutex_);
    if (!armAll()) return;
  }
  const auto ready = events_.wait(draining_.step() ? kDrainingMs : -1);
  std::lock_guard lock(mutex_);
  for (const uint64_t id : ready) {
    if (id == kControlEvent) pollsControl_ = true;
    ServedLink* link = find(id);
    if (link && link->target && std::find(polled_.begin(), polled_.end(), id) == polled_.end()) {
      polled_.push_back(id);
    }
  }
}

}  // namespace hmc::ucx
