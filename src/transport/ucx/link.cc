#include "transport/ucx/link.h"

#include <poll.h>

#include "base/error.h"
#include "base/random.h"
#include "transport/check.h"
#include "transport/ucx/lanes.h"

namespace hmc::ucx {

namespace {

// How long the peer may take to answer the first message.
constexpr std::chrono::milliseconds kHelloTimeout{10000};
constexpr int kPollMs = 5;
// How long a path stays for the answer to its hello when we want it no longer.
constexpr std::chrono::milliseconds kLastAnswer{2000};

bool isLoss(ucs_status_t status) {
  return UCS_IS_ENDPOINT_ERROR(status) || status == UCS_ERR_CONNECTION_RESET ||
         status == UCS_ERR_NOT_CONNECTED || status == UCS_ERR_UNREACHABLE ||
         status == UCS_ERR_CANCELED || status == UCS_ERR_REJECTED;
}

}  // namespace

Result<std::unique_ptr<Link>> UcxLink::create(Progress& progress, Service& service,
                                              TransportCounters& counters,
                                              const LinkOptions& options) {
  std::unique_ptr<UcxLink> link(new UcxLink(progress, service, counters, options));
  Address address{link->number_, "", service.address(), link->api().version};
  HMC_ASSIGN(address.target, service.open(link->number_, *link, options.lease));
  link->encoded_ = address.encode();
  return std::unique_ptr<Link>(std::move(link));
}

UcxLink::UcxLink(Progress& progress, Service& service, TransportCounters& counters,
                 const LinkOptions& options)
    : progress_(progress),
      service_(service),
      counters_(counters),
      fence_(options.lease->length()),
      onEnd_(options.onEnd),
      number_(randomU64()),
      slots_(progress.ended_),
      hardware_(api(), slots_, *this) {
  std::lock_guard lock(progress_.mutex_);
  progress_.all_.push_back(this);
}

UcxLink::~UcxLink() {
  close(error(Code::cancelled, "the link was destroyed"));
  std::unique_lock lock(progress_.mutex_);
  while (!reconcile()) progress_.changed_.wait_until(lock, timer_);
  lock.unlock();
  service_.remove(number_);
  lock.lock();
  std::erase(progress_.all_, this);
  // An event that was on its way when the path went may have put us there once more.
  std::erase(progress_.polled_, this);
}

Status UcxLink::connect(std::string_view peerAddress) {
  HMC_ASSIGN(const Address peer, Address::decode(peerAddress));
  {
    std::lock_guard lock(progress_.mutex_);
    if (!why_.ok()) return error(Code::disconnected, "this ucx link is closed");
    if (peer_) return error(Code::invalidArgument, "this ucx link is already connected");
    peer_ = peer;
  }
  Status status = service_.connect(number_, peer);
  if (!status.ok()) close(status);
  connected_ = status.ok();
  return status;
}

Result<std::unique_ptr<RemoteMemory>> UcxLink::importKey(std::string_view bytes, Deadline deadline,
                                                         void* place) {
  HMC_TRY(checkPlace(place, "ucx"));
  HMC_ASSIGN(const Key key, Key::decode(bytes));
  // First the connection that tells when the peer dies.
  if (connected_) HMC_TRY(service_.announce(number_, deadline));
  HMC_TRY(awaitPath(earlier(deadline, Deadline(kHelloTimeout))));
  std::lock_guard lock(progress_.mutex_);
  if (!why_.ok()) return why_;
  PathTaken taken = taken_;
  if (onHardware_ && !key.hindrance.empty()) taken.slowerBecause = key.hindrance;
  auto remote = std::make_unique<UcxRemote>(*this, key, std::move(taken));
  if (!remote->packed.empty()) hardware_.add(*remote);
  hardware_.keyOf(*remote);
  return std::unique_ptr<RemoteMemory>(std::move(remote));
}

UcxRemote::~UcxRemote() {
  link_.forget(*this);
}

void UcxLink::forget(const UcxRemote& remote) {
  std::lock_guard lock(progress_.mutex_);
  hardware_.remove(remote);
}

Status UcxLink::beginPath() {
  if (!why_.ok()) return why_;
  if (!peer_) return error(Code::invalidArgument, "this ucx link is not connected yet");
  if (path_) return Status();
  Path::User& user = *this;
  HMC_ASSIGN(path_, Path::create(progress_.context_, user, peer_->target));
  HMC_TRY(progress_.events_.add(path_->fd(), reinterpret_cast<uint64_t>(this)));
  taken_.name = laneOf(api(), path_->endpoint());
  taken_.slowerBecause = slowerBecause(api(), taken_.name);
  onHardware_ = isHardware(taken_.name);
  inPlace_ = isTcp(taken_.name) && progress_.context_.wholeOverTcp();
  peerName_ = fmt::format("the peer with UCX {} over {}", peer_->version, taken_.name);
  slots_.create(*this);
  if (onHardware_ && state_ == PathState::working) hardware_.use(path_->endpoint());
  return Status();
}

// Drives the path itself, because nobody may be in progress().
Status UcxLink::awaitPath(Deadline deadline) {
  while (true) {
    pollfd waiting{-1, POLLIN, 0};
    {
      std::lock_guard lock(progress_.mutex_);
      HMC_TRY(beginPath());
      if (path_->up() && state_ == PathState::working) return Status();
      if (deadline.passed()) {
        return error(Code::deadlineExceeded, "{} did not answer in time", peerName_);
      }
      poll();
      if (progress_.needsReconcile_) progress_.reconcile();
      if (!arm()) continue;
      if (path_) waiting.fd = path_->fd();
    }
    // Another thread's progress() may take the event, or the link be closed: check again soon.
    ::poll(&waiting, 1, deadline.leftMs(kPollMs));
  }
}

Status UcxLink::explain(const char* what, ucs_status_t status) const {
  return error(isLoss(status) ? Code::disconnected : Code::failed, "UCX {} {} {}: {}",
               api().version, what, peerName_, api().text(status));
}

size_t UcxLink::post(std::span<const Op> ops) {
  std::lock_guard lock(progress_.mutex_);
  size_t accepted = 0;
  while (accepted < ops.size() && start(ops[accepted])) ++accepted;
  hardware_.flush();
  if (path_ && !ops.empty()) progress_.startPolling(*this);
  progress_.wakeIfAsleep();
  return accepted;
}

// False when there is no room for it.
bool UcxLink::start(const Op& op) {
  Status status = why_;
  if (status.ok()) status = checkOp(op, kLargest);
  if (!status.ok()) {
    op.completion->fail(status);
    return true;
  }
  if (state_ != PathState::working || !path_ || !path_->up() || !slots_.hasRoom(op.size)) {
    return false;
  }
  const auto& remote = static_cast<const UcxRemote&>(*op.remote);
  RequestSlot& slot = slots_.take(op);
  slot.key = hardware_.keyOf(remote);
  if (slot.key) ++slot.key->users;
  if (!slot.key || !hardware_.start(slot, remote.address + op.remoteOffset)) sendAsMessage(slot);
  return true;
}

void UcxLink::sendAsMessage(RequestSlot& slot) {
  const bool put = slot.kind == OpKind::put;
  const auto kind = put ? RequestKind::put : RequestKind::get;
  slot.header = swapped(Request{kind, slots_.idOf(slot), slot.region, slot.offset, slot.size});
  slot.waiting = 1;
  slot.refusal = Status();
  slot.carried = {static_cast<const char*>(slot.local), put ? slot.size : 0, inPlace_};
  const ucs_status_ptr_t request =
      path_->send(path_->endpoint(), kRequestMessage, &slot.header, sizeof(slot.header),
                  slot.carried, &UcxLink::onSent, &slot);
  if (UCS_PTR_IS_ERR(request)) {
    slots_.end(slot, explain("cannot send to", UCS_PTR_STATUS(request)));
  } else if (request) {
    ++slot.waiting;
  }
}

// What fails keeps its slot until the link is closed for it.
void UcxLink::onSent(void* request, ucs_status_t status, void* which) {
  auto& slot = *static_cast<RequestSlot*>(which);
  UcxLink& self = *slot.owner;
  const bool done = status == UCS_OK;
  done || !self.path_ ? self.api().ucp_request_free(request) : self.path_->keep(request);
  done ? self.partDone(slot) : self.endpointFailed(status);
}

void UcxLink::replied(const Reply& reply, const void* data, size_t size) {
  RequestSlot* slot = slots_.find(reply.id);
  const bool due = slot && slot->completion && slot->waiting > 0;
  if (!why_.ok()) return;
  const size_t expected = due && slot->kind == OpKind::get ? slot->size : 0;
  if (!due || (reply.code == 0 && size != expected) || size > kLargest) {
    return fail(error(Code::disconnected, "{} broke the protocol: a reply of {} bytes, expected {}",
                      peerName_, size, due ? std::to_string(expected) : "none"));
  }
  if (reply.code != 0) {
    const bool known = reply.code <= static_cast<uint64_t>(Code::failed);
    const Code code = known ? static_cast<Code>(reply.code) : Code::failed;
    slot->refusal = Status(code, std::string(static_cast<const char*>(data), size));
    if (slot->resent && code == Code::notFound) hardware_.leaveToMessages(slot->region);
  } else if (size > 0) {
    row_.copy(slot->local, data, size);
  }
  partDone(*slot);
}

void UcxLink::partDone(RequestSlot& slot) {
  if (--slot.waiting == 0) slots_.end(slot, std::exchange(slot.refusal, Status()));
}

// Called by UCX, and for a request that failed before UCX has said so. The path is in progress(),
// so reconcile() drops it later.
void UcxLink::endpointFailed(ucs_status_t status) {
  if (!why_.ok() || state_ == PathState::broken) return;
  if (state_ != PathState::working || !isRefusal(status)) return fail(explain("lost", status));
  hardware_.stop();
  state_ = PathState::broken;
  progress_.needsReconcile_ = true;
}

// Does this say that the peer's hardware refuses what we asked, and not that the peer is gone? Its
// end of the path is broken then, too, and nothing that is still on its way there arrives.
bool UcxLink::isRefusal(ucs_status_t status) const {
  return onHardware_ && path_->up() && slots_.resent() == 0 && status == UCS_ERR_CONNECTION_RESET;
}

// The peer still serves, so a second path to it can be made. That fails if the peer is gone.
void UcxLink::recover() {
  dropPath();
  state_ = PathState::recovering;
  timer_ = Clock::now() + kHelloTimeout;
  Status status = beginPath();
  if (status.ok()) return progress_.startPolling(*this);
  if (why_.ok()) fail(status);
}

void UcxLink::poll() {
  if (!path_) return;
  path_->progress();
  if (state_ == PathState::recovering && why_.ok() && path_->up()) resendAll();
}

void UcxLink::resendAll() {
  state_ = PathState::working;
  timer_ = Clock::time_point::max();
  if (onHardware_) hardware_.use(path_->endpoint());
  counters_.retries.fetch_add(slots_.markResent(), std::memory_order_relaxed);
  for (RequestSlot& slot : slots_.all()) {
    if (slot.resent) sendAsMessage(slot);
  }
}

void UcxLink::beginClose(const Status& why) {
  why_ = why;
  hardware_.stop();
  onEnd_();
  timer_ = Clock::now() + fence_;
  progress_.needsReconcile_ = true;
}

void UcxLink::fail(const Status& why) {
  beginClose(why);
  service_.leaveSoon(number_);
}

// Before it is up, no operation has gone over it.
void UcxLink::dropPath() {
  if (!path_) return;
  std::erase(progress_.polled_, this);
  const bool settled = path_->settled();
  settled ? path_->stop() : path_->disown();
  hardware_.stop();
  hardware_.releaseKeys();
  progress_.events_.remove(path_->fd());
  if (!settled) progress_.draining_.add(std::move(path_), kLastAnswer);
  path_.reset();
}

// Everything that recovery and closing need and that can be done now. True when nothing is left.
bool UcxLink::reconcile() {
  if (state_ == PathState::broken && why_.ok()) recover();
  if (state_ == PathState::recovering && why_.ok() && Clock::now() >= timer_) {
    fail(error(Code::disconnected, "{} stopped answering", peerName_));
  }
  if (why_.ok()) return state_ == PathState::working;
  dropPath();
  if (Clock::now() >= timer_) fenced_ = true;
  // Without our path nothing of a get moves any more. A put may be at the peer, or on its way
  // there, until that is fenced.
  for (RequestSlot& slot : slots_.all()) {
    if (slot.completion && (fenced_ || slot.kind == OpKind::get)) slots_.end(slot, why_);
  }
  if (slots_.used() > 0) return false;
  timer_ = Clock::time_point::max();
  progress_.changed_.notify_all();
  return true;
}

void UcxLink::stopSending(const Status& why, bool fenced) {
  std::lock_guard lock(progress_.mutex_);
  if (why_.ok()) beginClose(why);
  fenced_ = fenced_ || fenced;
  reconcile();
  progress_.wakeIfAsleep();
}

void UcxLink::close(const Status& why) {
  stopSending(why, false);
  service_.leave(number_);
}

void UcxLink::peerLeft(const Status& why, bool fenced) {
  stopSending(why, fenced);
}

}  // namespace hmc::ucx
