#include "transport/ipc/service.h"

#include <algorithm>
#include <latch>

#include "base/error.h"
#include "base/log.h"
#include "base/pulse.h"
#include "base/thread.h"
#include "memory/copy.h"

namespace hmc::ipc {

namespace {

using Clock = Deadline::Clock;

// How long the thread looks for more work before it sleeps: a wake-up costs its peer more.
constexpr std::chrono::microseconds kServiceSpin{50};
// How long a guest may take to hand over its ring. Others wait meanwhile.
constexpr std::chrono::seconds kHandOver{1};

}  // namespace

Service::~Service() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  // Not Bell::ring(), which would believe what peers wrote there.
  Bell& bell = bells_.get()->serve;
  bell.count.fetch_add(1);
  futexWakeAll(bell.count);
}

Result<std::string> Service::start() {
  HMC_ASSIGN(std::string token, bells_.token());
  std::lock_guard lock(startMutex_);
  if (!thread_.joinable()) {
    // Peers believe that we are gone when they see no pulse: it beats before they get the token.
    std::latch beating(1);
    thread_ = namedThread("hmc-ipc", [this, &beating](const std::stop_token& stop) {
      Pulse pulse(bells_.get()->pulse);
      beating.count_down();
      run(stop);
    });
    beating.wait();
  }
  return token;
}

std::unique_lock<std::mutex> Service::lockFirst() {
  wanting_.fetch_add(1);
  std::unique_lock lock(mutex_);
  wanting_.fetch_sub(1);
  return lock;
}

void Service::addLink(const std::string& link, std::shared_ptr<Lease> lease) {
  auto lock = lockFirst();
  links_.emplace(link, std::move(lease));
}

void Service::removeLink(const std::string& link) {
  auto lock = lockFirst();
  links_.erase(link);
  std::erase_if(guests_, [&](const std::unique_ptr<Guest>& guest) {
    if (guest->link != link) return false;
    guest->ring->guest.store(Ring::left);
    guest->bells->progress.ring();
    return true;
  });
}

void Service::run(const std::stop_token& stop) {
  Bell& bell = bells_.get()->serve;
  auto lastWork = Clock::now();
  while (!stop.stop_requested()) {
    uint32_t seen = bell.count.load();
    bool worked = takeInvitations();
    worked = serveAll() || worked;
    if (worked) {
      lastWork = Clock::now();
    } else if (Clock::now() - lastWork < kServiceSpin) {
      std::this_thread::yield();
    } else if (!stop.stop_requested()) {
      bell.sleep(seen, Deadline::never());
    }
  }
}

bool Service::takeInvitations() {
  bool took = false;
  for (Invitation& invitation : bells_.get()->invitations) {
    if (invitation.state.load(std::memory_order_acquire) != Invitation::written) continue;
    uint32_t size = invitation.exchangeSize.load(std::memory_order_relaxed);
    size = std::min<uint32_t>(size, sizeof(invitation.exchange));
    std::string exchange(invitation.exchange, size);
    std::string link(invitation.link, kNonceSize);
    std::string ringToken(invitation.ringToken, kTokenSize);
    std::string bellsToken(invitation.bellsToken, kTokenSize);
    invitation.state.store(Invitation::free, std::memory_order_release);
    answer(exchange, link, ringToken, bellsToken);
    took = true;
  }
  return took;
}

void Service::answer(const std::string& exchange, const std::string& link,
                     const std::string& ringToken, const std::string& bellsToken) {
  Deadline deadline(kHandOver);
  auto ring = SharedBlock<Ring>::fetch(exchange, ringToken, deadline);
  auto bells = SharedBlock<Bells>::fetch(exchange, bellsToken, deadline);
  if (!ring.ok() || !bells.ok()) {
    // There is no way to say so: the guest waits until its own deadline.
    logWarn("a peer's ring could not be taken: {}",
            (ring.ok() ? bells.status() : ring.status()).toString());
    return;
  }
  auto lock = lockFirst();
  auto found = links_.find(link);
  auto& said = (*ring)->guest;
  bool welcome = found != links_.end();
  if (welcome) {
    guests_.push_back(
        std::make_unique<Guest>(Guest{link, found->second, *std::move(ring), *std::move(bells)}));
    auto& guest = guests_.back()->ring->guest;
    guest.store(Ring::accepted);
    futexWakeAll(guest);
    return;
  }
  said.store(Ring::refused);
  futexWakeAll(said);
}

bool Service::serveAll() {
  bool worked = false;
  std::unique_lock lock(mutex_);
  for (size_t i = 0; i < guests_.size(); ++i) {
    worked = serve(*guests_[i]) || worked;
    if (wanting_.load() > 0) {
      lock.unlock();
      while (wanting_.load() > 0) std::this_thread::yield();
      lock.lock();
    }
  }
  // A guest that has closed its ring will never use it again.
  std::erase_if(guests_, [](const auto& guest) { return guest->ring->closed.load() != 0; });
  return worked;
}

bool Service::serve(Guest& guest) {
  bool worked = false;
  for (uint32_t i = 0; i < kSlots; ++i) {
    Slot& slot = guest.ring->slots[i];
    uint32_t expected = Slot::posted;
    if (slot.state.load(std::memory_order_relaxed) != expected) continue;
    if (guest.ring->closed.load() != 0) continue;
    if (!slot.state.compare_exchange_strong(expected, Slot::claimed)) continue;
    tellOrderAfter();
    slot.outcome.store(static_cast<uint32_t>(apply(guest, i)), std::memory_order_relaxed);
    tellOrderBefore();
    slot.state.store(Slot::done, std::memory_order_release);
    guest.bells->progress.ring();
    worked = true;
  }
  return worked;
}

Code Service::apply(Guest& guest, uint32_t index) {
  Slot& slot = guest.ring->slots[index];
  const uint32_t kind = slot.kind.load(std::memory_order_relaxed);
  const uint32_t size = slot.size.load(std::memory_order_relaxed);
  const bool put = kind == static_cast<uint32_t>(OpKind::put);
  if (!put && kind != static_cast<uint32_t>(OpKind::get)) return Code::invalidArgument;
  if (size > kSlotBytes) return Code::outOfRange;
  if (guest.lease && guest.lease->expired()) return Code::disconnected;
  const Region piece = guest.ring->piece(index, size);
  return exports_
      .use(slot.region.load(std::memory_order_relaxed), put ? OpKind::put : OpKind::get,
           slot.offset.load(std::memory_order_relaxed), size,
           [&](const Region& ours) { return put ? copy(ours, piece) : copy(piece, ours); })
      .code();
}

}  // namespace hmc::ipc
