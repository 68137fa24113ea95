#include "store/connection.h"

#include "base/error.h"
#include "base/thread.h"
#include "control/security.h"
#include "control/socket.h"
#include "store/back_off.h"

namespace hmc::store {

namespace {

// How long one attempt may take; the destructor may have to wait for it.
constexpr std::chrono::milliseconds kAttempt{3000};

// What another attempt does not mend.
bool isFinal(const Status& problem) {
  switch (problem.code()) {
    case Code::permissionDenied:
    case Code::unsupported:
    case Code::invalidArgument:
      return true;
    default:
      return false;
  }
}

}  // namespace

Result<std::unique_ptr<Connection>> Connection::open(const std::string& address,
                                                     const StoreOptions& options,
                                                     ConnectionUpkeep& upkeep, Deadline deadline) {
  std::unique_ptr<Connection> connection(new Connection(address, upkeep));
  control::ControlOptions control;
  control.name = "a client of the store";
  control.secret = options.secret;
  HMC_TRY(control::addDefaults(control, options.tls));
  HMC_ASSIGN(connection->control_, control::Control::create(control, *connection));
  HMC_TRY(connection->connectUntil(deadline, options.stop));
  HMC_ASSIGN(connection->thread_,
             startThread("hmc-store", [at = connection.get()](std::stop_token) { at->serve(); }));
  return connection;
}

void Connection::close() {
  if (!control_) return;
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  // Ends the calls that the thread may wait for. What was posted before goes out first.
  if (const ChannelPtr last = channel()) last->close(Status());
  if (thread_.joinable()) thread_.join();
  control_.reset();
}

Status Connection::joined(const ChannelPtr& channel) {
  if (channel->peer().attributes == kProtocol) return Status();
  return error(Code::unsupported, "what listens at {} is no store that speaks {}", address_,
               kProtocol);
}

void Connection::answer(const ChannelPtr&, uint16_t, std::string_view, Channel::Answered reply) {
  reply(error(Code::unsupported, "a client of the store answers no calls"));
}

ChannelPtr Connection::channel() const {
  std::lock_guard lock(mutex_);
  return channel_ && channel_->status().ok() ? channel_ : nullptr;
}

void Connection::wake() {
  std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

Status Connection::outOfReach(const std::string& what) const {
  const Status why = channel_ && !channel_->status().ok() ? channel_->status() : problem_;
  return error(Code::deadlineExceeded,
               "{} before the deadline: the store at {} is out of reach: {}", what, address_,
               why.ok() ? "it does not answer" : why.message());
}

Result<ChannelPtr> Connection::waitForChannel(Deadline deadline, const std::stop_token& stop) {
  if (fork_.inChild()) return ForkGuard::refusal();
  const std::stop_callback notify(stop, [this] {
    std::lock_guard lock(mutex_);
    changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stop.stop_requested()) return error(Code::cancelled, "waiting for the store was given up");
    if (channel_ && channel_->status().ok()) return channel_;
    if (deadline.passed()) return outOfReach("no connection");
    changed_.wait_until(lock, deadline.at());
  }
}

Result<std::string> Connection::call(const Request& request, Repeat repeat, Deadline deadline,
                                     const std::stop_token& stop) {
  const std::string bytes = encode(request);
  for (;;) {
    HMC_ASSIGN(const ChannelPtr channel, waitForChannel(deadline, stop));
    auto answer = channel->call(static_cast<uint16_t>(request.op), bytes, deadline, stop);
    const bool lost = !answer.ok() && !channel->status().ok();
    if (!lost) return answer;
    if (repeat == Repeat::no) {
      return error(Code::disconnected, "the store at {} went before it answered: {}", address_,
                   channel->status().message());
    }
  }
}

Status Connection::connectOnce(Deadline deadline) {
  auto channel = control_->connect(address_, std::string(kProtocol), deadline);
  std::lock_guard lock(mutex_);
  problem_ = channel.status();
  if (!channel.ok()) return problem_;
  channel_ = *std::move(channel);
  changed_.notify_all();
  return Status();
}

Status Connection::connectUntil(Deadline deadline, const std::stop_token& stop) {
  BackOff backOff;
  for (;;) {
    Status status = connectOnce(earlier(deadline, kAttempt));
    if (status.ok() || isFinal(status)) return status;
    if (deadline.passed() || endsWithin(earlier(deadline, backOff.next()), stop)) {
      if (stop.stop_requested()) return error(Code::cancelled, "opening the store was given up");
      std::lock_guard lock(mutex_);
      return outOfReach("opening it");
    }
  }
}

bool Connection::endsWithin(Deadline until, const std::stop_token& stop) {
  const std::stop_callback notify(stop, [this] {
    std::lock_guard lock(mutex_);
    changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, until.at(), [&] { return ending_ || stop.stop_requested(); });
  return ending_ || stop.stop_requested();
}

void Connection::serve() {
  BackOff backOff;
  auto lastAttempt = Deadline::Clock::now();
  for (;;) {
    const ChannelPtr now = channel();
    if (!now) {
      // A server that ends each connection at once is dialled as seldom as one that is not there.
      if (Deadline::Clock::now() - lastAttempt > BackOff::kLongest) backOff = BackOff();
      if (endsWithin(backOff.next())) return;
      (void)connectOnce(kAttempt);
      lastAttempt = Deadline::Clock::now();
      continue;
    }
    const Deadline next = upkeep_.maintain(now);
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, next.at(), [&] { return woken_ || ending_; });
    if (ending_) return;
    woken_ = false;
  }
}

}  // namespace hmc::store
