#include "transport/ipc/service.h"

#include <algorithm>
#include <latch>

#include "base/error.h"
#include "base/guarded_copy.h"
#include "base/liveness.h"
#include "base/thread.h"

namespace hmc::ipc {

namespace {

using Clock = Deadline::Clock;

// How long the thread polls for more work before it sleeps. A wake-up would cost the peer more.
constexpr std::chrono::microseconds kServiceSpin{50};
// A link needs one; threads that open their first memory at the same time may each make one.
constexpr int kMostRings = 16;

}  // namespace

Service::~Service() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  // Not Doorbell::ring(): it trusts `sleepers`, which peers can write.
  Doorbell& doorbell = page_.serve;
  doorbell.count.fetch_add(1);
  futexWakeAll(doorbell.count);
}

Status Service::start() {
  std::lock_guard lock(startMutex_);
  if (thread_.joinable()) return Status();
  // Peers take us for dead while the word is empty, so it is set before they get a key.
  std::latch alive(1);
  HMC_ASSIGN(thread_, startThread("hmc-ipc", [this, &alive](const std::stop_token& stop) {
               Liveness liveness(page_.liveness);
               alive.count_down();
               run(stop);
             }));
  alive.wait();
  return Status();
}

std::unique_lock<std::mutex> Service::lockFirst() {
  waiting_.fetch_add(1);
  std::unique_lock lock(mutex_);
  waiting_.fetch_sub(1);
  return lock;
}

void Service::addLink(const std::string& link, std::shared_ptr<Lease> lease) {
  auto lock = lockFirst();
  links_.emplace(link, std::move(lease));
}

void Service::removeLink(const std::string& link) {
  auto lock = lockFirst();
  links_.erase(link);
  std::erase_if(sessions_, [&](const std::unique_ptr<Session>& session) {
    if (session->link != link) return false;
    session->ring->closedByTarget.store(1);
    session->page->progress.ring();
    return true;
  });
}

void Service::run(const std::stop_token& stop) {
  Doorbell& doorbell = page_.serve;
  auto lastWork = Clock::now();
  while (!stop.stop_requested()) {
    uint32_t seen = doorbell.count.load();
    if (serveAll()) {
      lastWork = Clock::now();
    } else if (Clock::now() - lastWork < kServiceSpin) {
      std::this_thread::yield();
    } else if (!stop.stop_requested()) {
      doorbell.sleep(seen, Deadline::never());
    }
  }
}

Status Service::acceptRing(const std::string& link, SharedBlock<Ring> ring,
                           SharedBlock<ServicePage> page) {
  auto lock = lockFirst();
  const auto found = links_.find(link);
  if (found == links_.end())
    return error(Code::disconnected, "the peer's end of the link is closed");
  const auto rings = std::count_if(sessions_.begin(), sessions_.end(),
                                   [&](const auto& session) { return session->link == link; });
  if (rings >= kMostRings) {
    return error(Code::exhausted, "the peer has {} rings of this link open and takes no more",
                 kMostRings);
  }
  sessions_.push_back(
      std::make_unique<Session>(Session{link, found->second, std::move(ring), std::move(page)}));
  return Status();
}

bool Service::serveAll() {
  bool worked = false;
  std::unique_lock lock(mutex_);
  for (size_t i = 0; i < sessions_.size(); ++i) {
    worked = serve(*sessions_[i]) || worked;
    if (waiting_.load() > 0) {
      lock.unlock();
      while (waiting_.load() > 0) std::this_thread::yield();
      lock.lock();
    }
  }
  // A peer that has closed its ring never uses it again.
  std::erase_if(sessions_,
                [](const auto& session) { return session->ring->closedByOrigin.load() != 0; });
  return worked;
}

bool Service::serve(Session& session) {
  bool worked = false;
  for (uint32_t i = 0; i < kSlots; ++i) {
    RingSlot& slot = session.ring->slots[i];
    uint32_t expected = RingSlot::posted;
    if (slot.state.load(std::memory_order_relaxed) != expected) continue;
    if (session.ring->closedByOrigin.load() != 0) continue;
    if (!slot.state.compare_exchange_strong(expected, RingSlot::claimed)) continue;
    tsanAcquire();
    slot.outcome.store(static_cast<uint32_t>(apply(session, i)), std::memory_order_relaxed);
    tsanRelease();
    slot.state.store(RingSlot::done, std::memory_order_release);
    session.page->progress.ring();
    worked = true;
  }
  return worked;
}

Code Service::apply(Session& session, uint32_t index) {
  RingSlot& slot = session.ring->slots[index];
  const uint32_t kind = slot.kind.load(std::memory_order_relaxed);
  const uint32_t size = slot.size.load(std::memory_order_relaxed);
  const bool put = kind == static_cast<uint32_t>(OpKind::put);
  if (!put && kind != static_cast<uint32_t>(OpKind::get)) return Code::invalidArgument;
  if (size > kSlotBytes) return Code::outOfRange;
  if (session.lease->expired()) return Code::disconnected;
  char* const piece = session.ring->data[index];
  return exports_
      .use(slot.region.load(std::memory_order_relaxed), put ? OpKind::put : OpKind::get,
           slot.offset.load(std::memory_order_relaxed), size,
           [&](const Region& ours) {
             // The owner of the memory may have protected it, or unmapped it.
             const bool copied =
                 put ? writeGuarded(ours.ptr, piece, size) : readGuarded(piece, ours.ptr, size);
             return copied ? Status() : Status(Code::failed, "");
           })
      .code();
}

}  // namespace hmc::ipc
