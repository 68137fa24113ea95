#include "control/control.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/random.h"
#include "control/control_impl.h"
#include "control/host_id.h"

namespace hmc {

namespace {
// How long the destructor waits for goodbyes to be delivered.
constexpr std::chrono::milliseconds kFarewell{1000};
}  // namespace

Result<std::unique_ptr<Control>> Control::create(const ControlOptions& options, FdExchange& fds,
                                                 ControlEvents& events) {
  if (options.heartbeat.count() <= 0 || options.lease <= options.heartbeat ||
      options.greeting.count() <= 0) {
    return error(Code::invalidArgument,
                 "a heartbeat of {} ms, a lease of {} ms and a greeting of {} ms: all must be "
                 "positive and the lease longer than the heartbeat",
                 options.heartbeat.count(), options.lease.count(), options.greeting.count());
  }
  HMC_ASSIGN(auto loop, Loop::create("hmc-control"));
  return std::unique_ptr<Control>(new ControlImpl(options, fds, events, std::move(loop)));
}

ControlImpl::ControlImpl(ControlOptions options, FdExchange& fds, ControlEvents& events,
                         std::shared_ptr<Loop> loop)
    : options_(std::move(options)),
      fds_(fds),
      events_(events),
      id_(randomBytes(kIdSize)),
      hostId_(options_.ring ? hostId() : std::string()),
      loop_(std::move(loop)) {
  loop_->run([this] {
    beat_ = std::make_unique<Loop::Timer>(*loop_);
    beat();
  });
}

ControlImpl::~ControlImpl() {
  loop_->run([this] {
    listeners_.clear();
    held_.clear();
    for (const auto& visitor : std::vector<VisitorPtr>(visitors_.begin(), visitors_.end())) {
      visitor->refuse(error(Code::disconnected, "the peer is closing"));
    }
    for (const auto& channel : channels_)
      channel->close(error(Code::disconnected, "it is closing"));
  });
  Deadline deadline = kFarewell;
  {
    std::unique_lock lock(mutex_);
    noSockets_.wait_until(lock, deadline.at(), [this] { return sockets_ == 0; });
  }
  loop_->run([this] {
    beat_.reset();
    for (const auto& channel : std::vector<ChannelPtr>(channels_.begin(), channels_.end())) {
      channel->end(error(Code::disconnected, "this side is closing"));
    }
  });
  loop_->stop();
}

void ControlImpl::setAttributes(std::string attributes) {
  std::lock_guard lock(mutex_);
  attributes_ = std::move(attributes);
}

std::string ControlImpl::attributes() const {
  std::lock_guard lock(mutex_);
  return attributes_;
}

Result<std::string> ControlImpl::listen(const std::string& text) {
  HMC_ASSIGN(Address address, parseAddress(text));
  HMC_ASSIGN(auto listener, Listener::open(address));
  std::string name = listener->address().toString();
  Status status;
  loop_->run([&] {
    OpenListener& open = listeners_[name];
    auto watch = loop_->watch(listener->fd(), EPOLLIN, [this, &open](uint32_t) { visitors(open); });
    status = watch.status();
    if (!status.ok()) return static_cast<void>(listeners_.erase(name));
    open.listener = std::move(listener);
    open.watch = *std::move(watch);
    open.pause = std::make_unique<Loop::Timer>(*loop_);
  });
  if (!status.ok()) return status;
  return name;
}

Status ControlImpl::closeListener(const std::string& text) {
  HMC_ASSIGN(Address address, parseAddress(text));
  size_t closed = 0;
  loop_->run([&] { closed = listeners_.erase(address.toString()); });
  if (closed == 0) return error(Code::notFound, "no listener is open at {}", text);
  return Status();
}

ControlImpl::ChannelPtr ControlImpl::connectedTo(const std::string& peerId) const {
  std::lock_guard lock(mutex_);
  auto found = table_.find(peerId);
  return found != table_.end() && found->second->status().ok() ? found->second : nullptr;
}

// The greeting is over on both sides. The peer hears `first` after our side has agreed and the
// table knows the channel.
Status ControlImpl::admitChannel(const ChannelPtr& channel, std::string_view first) {
  const std::string& peer = channel->peer().id;
  HMC_TRY(channel->prepare());
  if (peer != id_) retire(peer);
  HMC_TRY(events_.joined(channel));
  channels_.insert(channel);
  {
    std::lock_guard lock(mutex_);
    ++sockets_;
    if (peer != id_) table_[peer] = channel;
  }
  channel->start(first);
  return Status();
}

// A peer that lets a new channel come about has given up the old one, and its reason is on the way.
void ControlImpl::retire(const std::string& peerId) {
  ChannelPtr old;
  {
    std::lock_guard lock(mutex_);
    auto found = table_.find(peerId);
    if (found != table_.end()) old = found->second;
  }
  if (old) old->giveUp();
}

void ControlImpl::ended(const ChannelPtr& channel, const Status& why) {
  {
    std::lock_guard lock(mutex_);
    auto found = table_.find(channel->peer().id);
    if (found != table_.end() && found->second == channel) table_.erase(found);
  }
  logDebug("left: {}", why.toString());
  events_.left(channel, why);
  std::vector<Held> settled;
  std::copy_if(held_.begin(), held_.end(), std::back_inserter(settled),
               [&](const Held& held) { return held.channel == channel; });
  // Later: we may be here because a channel that follows this one is being made.
  if (!settled.empty()) loop_->post([this, settled] { decideAgain(settled); });
}

void ControlImpl::gone(const ChannelPtr& channel) {
  if (channels_.erase(channel) == 0) return;
  std::lock_guard lock(mutex_);
  if (--sockets_ == 0) noSockets_.notify_all();
}

void ControlImpl::beat() {
  for (const auto& channel : std::vector<ChannelPtr>(channels_.begin(), channels_.end())) {
    channel->beat();
  }
  auto pause =
      std::max(std::min(options_.heartbeat, options_.lease / 4), std::chrono::milliseconds(1));
  beat_->after(pause, [this] { beat(); });
}

}  // namespace hmc
