#include "transport/ucx/outgoing.h"

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>

#include "base/error.h"
#include "transport/ucx/lanes.h"

namespace hmc::ucx {

namespace {

// How long the peer may take to answer the first message.
constexpr std::chrono::milliseconds kPatience{10000};
constexpr int kSoonMs = 5;

bool isLoss(ucs_status_t status) {
  return UCS_IS_ENDPOINT_ERROR(status) || status == UCS_ERR_CONNECTION_RESET ||
         status == UCS_ERR_NOT_CONNECTED || status == UCS_ERR_UNREACHABLE ||
         status == UCS_ERR_CANCELED || status == UCS_ERR_REJECTED;
}

}  // namespace

Outgoing::Outgoing(Origin& origin, std::chrono::milliseconds fence, std::function<void()> failed)
    : origin_(origin), fence_(fence), failed_(std::move(failed)) {
  std::lock_guard lock(origin_.mutex_);
  origin_.all_.push_back(this);
}

Outgoing::~Outgoing() {
  std::lock_guard lock(origin_.mutex_);
  std::erase(origin_.all_, this);
  // An event that was on its way when the path went may have roused us once more.
  std::erase(origin_.awake_, this);
}

Status Outgoing::connect(const Address& peer) {
  std::lock_guard lock(origin_.mutex_);
  if (!why_.ok()) return error(Code::disconnected, "this ucx link is closed");
  if (peer_) return error(Code::invalidArgument, "this ucx link is already connected");
  peer_ = peer;
  return Status();
}

Result<std::unique_ptr<RemoteMemory>> Outgoing::importKey(const Key& key, Deadline deadline) {
  HMC_TRY(awaitPath(earlier(deadline, Deadline(kPatience))));
  std::lock_guard lock(origin_.mutex_);
  if (!why_.ok()) return why_;
  PathTaken words = taken_;
  if (hardware_ && !key.hindrance.empty()) words.slowerBecause = key.hindrance;
  RemoteKeys& keys = *this;
  auto remote = std::make_unique<UcxRemote>(keys, key, std::move(words));
  if (!remote->packed.empty()) remotes_.push_back(remote.get());
  keyOf(*remote);
  return std::unique_ptr<RemoteMemory>(std::move(remote));
}

// With the origin's mutex held.
Status Outgoing::beginPath() {
  if (!why_.ok()) return why_;
  if (!peer_) return error(Code::invalidArgument, "this ucx link is not connected yet");
  if (path_) return Status();
  Path::User& user = *this;
  HMC_ASSIGN(auto path, Path::create(origin_.context_, user));
  HMC_TRY(path->connect(peer_->target));
  path_ = std::move(path);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = this;
  if (epoll_ctl(origin_.epoll_.get(), EPOLL_CTL_ADD, path_->fd(), &event) != 0) {
    return errnoStatus("watching a ucx worker");
  }
  taken_.name = laneOf(api(), path_->endpoint());
  taken_.slowerBecause = slowerBecause(api(), taken_.name);
  hardware_ = isHardware(taken_.name);
  inPlace_ = isTcp(taken_.name) && origin_.context_.wholeOverTcp();
  who_ = fmt::format("the peer with UCX {} over {}", peer_->version, taken_.name);
  if (!slots_.empty()) return Status();
  slots_.resize(kMostOps);
  for (Slot& slot : slots_) {
    slot.owner = this;
    slot.next = std::exchange(free_, &slot);
  }
  return Status();
}

// Drives the path itself, because nobody may be in progress().
Status Outgoing::awaitPath(Deadline deadline) {
  while (true) {
    pollfd waiting{-1, POLLIN, 0};
    {
      std::lock_guard lock(origin_.mutex_);
      HMC_TRY(beginPath());
      if (path_->up() && stage_ == Stage::whole) return Status();
      if (deadline.passed()) {
        return error(Code::deadlineExceeded, "{} did not answer in time", who_);
      }
      look();
      if (origin_.needsTending_) origin_.tend();
      if (!arm()) continue;
      if (path_) waiting.fd = path_->fd();
    }
    // Another thread's progress() may take the event, or the link be closed: look again soon.
    poll(&waiting, 1, deadline.leftMs(kSoonMs));
  }
}

Status Outgoing::sentence(const char* what, ucs_status_t status) const {
  return error(isLoss(status) ? Code::disconnected : Code::failed, "UCX {} {} {}: {}",
               api().version, what, who_, api().text(status));
}

// Called by UCX, and for a request that failed before UCX has said so. The path is in progress()
// and is dropped by tend().
void Outgoing::lost(ucs_status_t status) {
  if (!why_.ok() || stage_ == Stage::broken) return;
  if (stage_ == Stage::whole && isRefusal(status)) {
    stage_ = Stage::broken;
    origin_.needsTending_ = true;
    return;
  }
  begin(sentence("lost", status));
  failed_();
}

// Does this say that the peer's hardware refuses what we asked, and not that the peer is gone? Its
// end of the path is broken then, too, and nothing that is still on its way there arrives.
bool Outgoing::isRefusal(ucs_status_t status) const {
  return hardware_ && path_->up() && repeats_ == 0 && status == UCS_ERR_CONNECTION_RESET;
}

// The peer serves on, so a second path to it can be made. That fails when it is gone after all.
void Outgoing::mend() {
  dropPath();
  open_ = nullptr;
  flushes_ = 0;
  batches_ = {};
  stage_ = Stage::mending;
  timer_ = Origin::Clock::now() + kPatience;
  Status status = beginPath();
  if (status.ok()) return origin_.rouse(*this);
  if (why_.ok()) begin(status);
  failed_();
}

void Outgoing::look() {
  if (!path_) return;
  path_->progress();
  if (stage_ == Stage::mending && why_.ok() && path_->up()) repeatAll();
}

void Outgoing::repeatAll() {
  stage_ = Stage::whole;
  timer_ = Origin::Clock::time_point::max();
  for (Slot& slot : slots_) slot.again = slot.completion != nullptr;
  repeats_ = used_;
  for (Slot& slot : slots_) {
    if (slot.again) send(&slot);
  }
}

void Outgoing::begin(const Status& why) {
  why_ = why;
  open_ = nullptr;
  timer_ = Origin::Clock::now() + fence_;
  origin_.needsTending_ = true;
}

// Before it is up, no operation has gone over it.
void Outgoing::dropPath() {
  if (!path_) return;
  std::erase(origin_.awake_, this);
  const bool settled = path_->settled();
  if (settled) path_->stop();
  for (Slot& slot : slots_) letGo(slot.key);
  for (const UcxRemote* remote : remotes_) letGo(remote->key);
  epoll_ctl(origin_.epoll_.get(), EPOLL_CTL_DEL, path_->fd(), nullptr);
  if (!settled) origin_.partings_.add(std::move(path_));
  path_.reset();
}

// Everything that mending and closing need and that can be done now. True when there is nothing
// left.
bool Outgoing::tend() {
  if (stage_ == Stage::broken && why_.ok()) mend();
  if (stage_ == Stage::mending && why_.ok() && Origin::Clock::now() >= timer_) {
    begin(error(Code::disconnected, "{} did not answer any more", who_));
    failed_();
  }
  if (why_.ok()) return stage_ == Stage::whole;
  dropPath();
  if (Origin::Clock::now() >= timer_) fenced_ = true;
  if (used_ > 0) endAll();
  if (!over()) return false;
  timer_ = Origin::Clock::time_point::max();
  origin_.changed_.notify_all();
  return true;
}

// Without our path nothing of a get moves any more. A put may lie at the peer, or on its way there,
// until that is fenced.
void Outgoing::endAll() {
  for (Slot& slot : slots_) {
    if (slot.completion && (fenced_ || slot.kind == OpKind::get)) endOne(&slot, why_);
  }
}

void Outgoing::close(const Status& why) {
  std::lock_guard lock(origin_.mutex_);
  if (why_.ok()) begin(why);
  tend();
  origin_.wakeIfAsleep();
}

void Outgoing::fenced() {
  std::lock_guard lock(origin_.mutex_);
  fenced_ = true;
  tend();
  origin_.wakeIfAsleep();
}

void Outgoing::finish(const Status& why) {
  close(why);
  std::unique_lock lock(origin_.mutex_);
  while (!tend()) origin_.changed_.wait_until(lock, timer_);
}

}  // namespace hmc::ucx
