#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <span>

#include "base/event_fd.h"

namespace hmc {

// Descriptors that one thread waits for together, and a way to wake it. The rest is safe from any
// thread.
class EventSet {
 public:
  static constexpr uint64_t kWoken = 0;  // the id that stands for wake()

  static Result<EventSet> create(const char* whose) {
    Fd epoll(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll) return errnoStatus(fmt::format("making an epoll for {}", whose));
    HMC_ASSIGN(EventFd wake, EventFd::create(whose));
    EventSet set(std::move(epoll), std::move(wake));
    HMC_TRY(set.add(set.wake_.get(), kWoken));
    return set;
  }

  Status add(int fd, uint64_t id, uint32_t events = EPOLLIN) const {
    if (change(EPOLL_CTL_ADD, fd, id, events)) return Status();
    return errnoStatus("adding a descriptor to an epoll");
  }
  void remove(int fd) const { change(EPOLL_CTL_DEL, fd, 0, 0); }
  // An operation of epoll_ctl(2). False when it failed; errno says why.
  bool change(int how, int fd, uint64_t id, uint32_t events) const {
    epoll_event event{};
    event.events = events;
    event.data.u64 = id;
    return epoll_ctl(epoll_.get(), how, fd, &event) == 0;
  }
  void wake() const { wake_.signal(); }

  // What is ready, with its id in data.u64; valid until the next call. -1 milliseconds: no limit.
  std::span<const epoll_event> waitForEvents(int timeoutMs) {
    const int count =
        epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), timeoutMs);
    const auto ready = std::span(events_).first(count > 0 ? static_cast<size_t>(count) : 0);
    for (const epoll_event& event : ready) {
      if (event.data.u64 == kWoken) wake_.clear();
    }
    return ready;
  }
  // The ids alone.
  std::span<const uint64_t> wait(int timeoutMs) {
    const auto ready = waitForEvents(timeoutMs);
    for (size_t i = 0; i < ready.size(); ++i) ids_[i] = ready[i].data.u64;
    return std::span(ids_).first(ready.size());
  }

 private:
  EventSet(Fd epoll, EventFd wake) : epoll_(std::move(epoll)), wake_(std::move(wake)) {}

  Fd epoll_;
  EventFd wake_;
  std::array<epoll_event, 64> events_{};
  std::array<uint64_t, 64> ids_{};
};

}  // namespace hmc
