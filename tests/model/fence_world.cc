#include "model/fence_world.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "control/handshake.h"
#include "transport/tcp/address.h"

namespace hmc::model {

namespace {

using std::chrono::milliseconds;

// One that all worlds share: it only remembers descriptors.
tcp::Progress& progress() {
  static const auto made = *tcp::Progress::create();
  return *made;
}

// What the two sides' handshake makes of their settings.
milliseconds agreed(milliseconds dialler, milliseconds acceptor) {
  control::DiallerHandshake here({}, "the peer", dialler);
  control::AcceptorHandshake there({}, std::string(control::kIdSize, 'a'), acceptor);
  const auto challenge = there.takeHello(here.hello());
  (void)here.takeChallenge(*challenge);
  if (here.lease() != there.lease()) std::abort();
  return here.lease();
}

// What the target of the stream says last.
const std::string& lastWord() {
  static const std::string word =
      tcp::farewell(std::string(tcp::Greeting::kSize, 'g'), "what both ends know");
  return word;
}

Status gone() {
  return error(Code::cancelled, "cancelled");
}

}  // namespace

FenceWorld::FenceWorld(const Rules& rules, Choices& choices) : rules_(rules), choices_(choices) {
  for (size_t i = 0; i < kPuts; ++i) {
    puts_.push_back({std::make_unique<Completion>(1),
                     std::string(kSize, static_cast<char>('a' + i)), std::nullopt});
  }
  const uint64_t region =
      exports_->add({memory_.data(), memory_.size(), Device{}}, Access::readWrite);
  handle_ = std::make_unique<tcp::TcpRemote>(region, memory_.size(), Access::readWrite, "tcp");
  connect();
}

FenceWorld::~FenceWorld() {
  targetSocket_.sending = nullptr;
  target_.reset();
}

void FenceWorld::connect() {
  const auto both = agreed(rules_.originLease, rules_.targetLease);
  const bool own = rules_.eachSideHasItsOwnLease;
  originSocket_ = {&toTarget_, &toOrigin_};
  targetSocket_ = {&toOrigin_, &toTarget_};
  lease_ = std::make_unique<Lease>(rules_.targetIgnoresTheLease ? milliseconds(1000000)
                                   : own                        ? rules_.targetLease
                                                                : both);
  heardAt_ = confirmedAt_ = Lease::Clock::now();
  target_ = std::make_unique<tcp::TargetStream>(tcp::Connection(Fd(host_.open(targetSocket_))),
                                                *exports_, *lease_, "", lastWord(), spare_);
  targetSocket_.sending = [this] { stopTarget(); };
  if (rules_.stopsBetweenLookAndReceive) targetSocket_.receiving = [this] { stopTarget(); };
  origin_ = std::make_unique<tcp::OriginStream>(own ? rules_.originLease : both, counters_);
  (void)origin_->attach(tcp::Connection(Fd(host_.open(originSocket_))), "the peer",
                        {"", lastWord(), ""}, progress(), 1, 0);
}

const char* FenceWorld::name(Action action) {
  static constexpr std::array<const char*, static_cast<size_t>(Action::kCount)> kNames{
      "post",
      "cancel",
      "give up the peer",
      "pump origin",
      "hear at origin",
      "serve target",
      "look at target",
      "hear at target",
      "beat",
      "deliver to target",
      "deliver to origin",
      "tick",
      "FIN at origin",
      "RST at origin",
      "FIN at target",
      "RST at target",
      "restart target",
      "use the old handle"};
  return kNames[static_cast<size_t>(action)];
}

std::vector<uint8_t> FenceWorld::possible() const {
  std::vector<uint8_t> actions;
  for (int i = 0; i < static_cast<int>(Action::kCount); ++i) {
    if (isPossible(static_cast<Action>(i))) actions.push_back(static_cast<uint8_t>(i));
  }
  return actions;
}

// What a full socket has kept back.
bool FenceWorld::canSend() const {
  return !origin_->ended() && origin_->load() > 0 &&
         toTarget_.sent.size() < SimulatedHost::kSendBuffer;
}

bool FenceWorld::isPossible(Action action) const {
  const bool strangers = strangers_ < rules_.strangers;
  const bool posted = puts_.front().source.front() == 'A';
  switch (action) {
    case Action::post:
      return !posted && !origin_->ended();
    case Action::cancel:
      return posted && !origin_->ended();
    case Action::giveUpThePeer:
      return posted && originTalks_;
    case Action::pumpOrigin:
      return origin_->fenceAt().time_since_epoch().count() <= host_.look() ||
             (!originSocket_.closed && (!toOrigin_.arrived.empty() || toOrigin_.finSeen ||
                                        toOrigin_.resetSeen || canSend()));
    case Action::hearAtOrigin:
      return originTalks_ && !saidToOrigin_.empty();
    case Action::serveTarget:
      return target_ && (!toTarget_.arrived.empty() || toTarget_.finSeen || toTarget_.resetSeen);
    case Action::lookAtTarget:
      return target_ && !toTarget_.arrived.empty() && (toTarget_.finSeen || toTarget_.resetSeen);
    case Action::hearAtTarget:
      return targetTalks_ && !saidToTarget_.empty();
    case Action::beat:
      return targetTalks_ && probes_ < static_cast<uint64_t>(rules_.beats);
    case Action::deliverToTarget:
      return SimulatedHost::hasMore(toTarget_);
    case Action::deliverToOrigin:
      return SimulatedHost::hasMore(toOrigin_);
    case Action::tick:
      return posted && ticks_ < rules_.ticks;
    case Action::endAtOrigin:
    case Action::resetAtOrigin:
      return strangers && posted && !originSocket_.closed && !toOrigin_.finSeen &&
             !toOrigin_.resetSeen;
    case Action::endAtTarget:
    case Action::resetAtTarget:
      return strangers && posted && target_ && !toTarget_.finSeen && !toTarget_.resetSeen;
    case Action::restartTarget:
      return rules_.restarts && posted && !memoryAtRestart_;
    case Action::useTheOldHandle:
      return memoryAtRestart_ && !target_ && puts_.size() == kPuts;
    default:
      return false;
  }
}

std::string FenceWorld::take(Action action) {
  switch (action) {
    case Action::post:
      for (size_t i = 0; i < kPuts; ++i) {
        puts_[i].source.assign(kSize, static_cast<char>('A' + i));
        if (!origin_->enqueue(op(puts_[i], i))) wrong_ = "a put was not taken";
      }
      origin_->flush();
      break;
    case Action::cancel:
      origin_->close(gone());
      break;
    case Action::giveUpThePeer:
      endChannelAtOrigin();
      break;
    case Action::pumpOrigin:
      pumpOrigin();
      break;
    case Action::hearAtOrigin:
      hearAtOrigin();
      break;
    case Action::serveTarget:
      serve(true);
      break;
    case Action::lookAtTarget:
      serve(false);
      break;
    case Action::hearAtTarget:
      hearAtTarget();
      break;
    case Action::beat:
      beat();
      break;
    case Action::deliverToTarget:
      SimulatedHost::deliver(toTarget_);
      break;
    case Action::deliverToOrigin:
      SimulatedHost::deliver(toOrigin_);
      break;
    case Action::tick:
      ++ticks_;
      tick();
      break;
    case Action::endAtOrigin:
      ++strangers_;
      toOrigin_.finSeen = true;
      if (rules_.anEndIsBelieved) toOrigin_.arrived += lastWord();
      break;
    case Action::resetAtOrigin:
      ++strangers_;
      toOrigin_.resetSeen = true;
      if (rules_.anEndIsBelieved) toOrigin_.arrived += lastWord();
      break;
    case Action::endAtTarget:
      ++strangers_;
      toTarget_.finSeen = true;
      break;
    case Action::resetAtTarget:
      ++strangers_;
      toTarget_.resetSeen = true;
      break;
    case Action::restartTarget:
      restart();
      break;
    case Action::useTheOldHandle:
      useTheOldHandle();
      break;
    default:
      break;
  }
  if (origin_->ended()) endLink();
  observe();
  return violation();
}

Op FenceWorld::op(Put& put, size_t index) {
  return {OpKind::put, put.source.data(),   nullptr, handle_.get(), index * kSize,
          kSize,       put.completion.get()};
}

void FenceWorld::tick() {
  host_.advanceTo((host_.look() / kTick + 1) * kTick);
}

void FenceWorld::pumpOrigin() {
  origin_->pump(true);
  origin_->expire();
}

// As PeerState does it: through the control connection, so that nothing that is said there later
// can be heard at the target before it.
void FenceWorld::endLink() {
  if (std::exchange(endSaid_, true) || !originTalks_ || rules_.theEndOfALinkIsNotSaid) return;
  saidToTarget_.push_back({Word::Kind::linkEnded});
}

void FenceWorld::endChannelAtOrigin() {
  if (!std::exchange(originTalks_, false)) return;
  endSaid_ = true;
  saidToTarget_.push_back({Word::Kind::bye});
  origin_->close(gone());
}

void FenceWorld::endChannelAtTarget() {
  if (!std::exchange(targetTalks_, false)) return;
  lease_->revoke();
  saidToOrigin_.push_back({Word::Kind::bye});
  target_.reset();
}

void FenceWorld::hearAtOrigin() {
  const Word word = saidToOrigin_.front();
  saidToOrigin_.pop_front();
  if (word.kind == Word::Kind::ping) saidToTarget_.push_back({Word::Kind::pong, word.number});
  if (word.kind == Word::Kind::bye) endChannelAtOrigin();
}

void FenceWorld::hearAtTarget() {
  const Word word = saidToTarget_.front();
  saidToTarget_.pop_front();
  if (!lease_->hear()) return endChannelAtTarget();
  heardAt_ = Lease::Clock::now();
  if (rules_.whatIsHeardRenews) lease_->confirm(confirmedAt_ = heardAt_);
  if (word.kind == Word::Kind::bye) return endChannelAtTarget();
  if (word.kind == Word::Kind::linkEnded) target_.reset();
  if (word.kind == Word::Kind::pong && timedProbe_ != 0 && word.number >= timedProbe_) {
    if (!rules_.whatIsHeardRenews) lease_->confirm(confirmedAt_ = timedAt_);
    timedProbe_ = 0;
  }
}

void FenceWorld::beat() {
  if (lease_->expired()) return endChannelAtTarget();
  ++probes_;
  if (timedProbe_ == 0) {
    timedProbe_ = probes_;
    timedAt_ = Lease::Clock::now();
  }
  saidToOrigin_.push_back({Word::Kind::ping, probes_});
}

// As Service::step().
void FenceWorld::serve(bool lookAtEvents) {
  const bool over = lookAtEvents && (toTarget_.finSeen || toTarget_.resetSeen);
  if (over || !target_->serve()) target_.reset();
}

// The target stands still in a system call while the origin gives up and waits for its fence.
void FenceWorld::stopTarget() {
  if (!target_ || stops_ == rules_.stops || choices_.choose(2) == 0) return;
  ++stops_;
  origin_->close(gone());
  endLink();
  while (origin_->fenceAt() != Time::max()) {
    tick();
    pumpOrigin();
  }
  observe();
}

// Another process, with other keys, that has the same memory. The kernel ends the connections.
void FenceWorld::restart() {
  targetSocket_.sending = nullptr;
  targetSocket_.receiving = nullptr;
  const std::string unsent = toOrigin_.sent;
  target_.reset();
  toOrigin_.sent = unsent;  // a killed process says no farewell
  targetTalks_ = false;
  saidToOrigin_.push_back({Word::Kind::bye});
  exports_ = std::make_unique<Exports>();
  exports_->add({memory_.data(), memory_.size(), Device{}}, Access::readWrite);
  memoryAtRestart_ = memory_;
}

void FenceWorld::useTheOldHandle() {
  Put put{std::make_unique<Completion>(1), std::string(kSize, 'z'), std::nullopt};
  Wire there, back;
  Socket here{&there, &back}, far{&back, &there};
  Lease lease(rules_.targetLease);
  tcp::TargetStream target(tcp::Connection(Fd(host_.open(far))), *exports_, lease, "", "", spare_);
  tcp::OriginStream origin(rules_.originLease, counters_);
  (void)origin.attach(tcp::Connection(Fd(host_.open(here))), "the peer", {}, progress(), 2, 0);
  origin.enqueue(op(put, 0));
  for (int round = 0; round < 4; ++round) {
    origin.pump(true);
    while (SimulatedHost::hasMore(there)) SimulatedHost::deliver(there);
    target.serve();
    while (SimulatedHost::hasMore(back)) SimulatedHost::deliver(back);
  }
  if (!put.completion->done() || put.completion->status().code() != Code::notFound)
    wrong_ = "a handle of the old incarnation was not refused by the new one";
  puts_.push_back(std::move(put));
}

void FenceWorld::observe() {
  for (size_t i = 0; i < kPuts; ++i) {
    Put& put = puts_[i];
    const std::string now = memory_.substr(i * kSize, kSize);
    if (put.completion->done() && !put.atItsEnd) {
      put.atItsEnd = now;
      if (!put.completion->failed() && now != put.source) wrong_ = "a put is done and is not there";
    }
    if (!put.atItsEnd || *put.atItsEnd == now) continue;
    for (size_t at = 0; at < kSize; ++at) late_ += now[at] != (*put.atItsEnd)[at] ? 1 : 0;
    wrong_ = "bytes of a put were applied after its end";
  }
  if (memoryAtRestart_ && *memoryAtRestart_ != memory_)
    wrong_ = "bytes for the old incarnation reached the new one";
}

std::string FenceWorld::violation() {
  return std::exchange(wrong_, "");
}

std::string FenceWorld::settle() {
  if (puts_.front().source.front() != 'A') return "";
  endChannelAtOrigin();
  for (int i = 0; i < 4 * std::max(rules_.originLease, rules_.targetLease).count(); ++i) {
    tick();
    pumpOrigin();
  }
  for (const Put& put : puts_) {
    if (!put.completion->done()) return "a put is pending for ever";
  }
  observe();
  return violation();
}

}  // namespace hmc::model
