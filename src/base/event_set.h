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

  // Level-triggered, for reading.
  Status add(int fd, uint64_t id) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = id;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return Status();
    return errnoStatus("adding a descriptor to an epoll");
  }
  void remove(int fd) const { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }
  void wake() const { wake_.signal(); }

  // The ids that are ready; valid until the next call. -1 milliseconds: no limit.
  std::span<const uint64_t> wait(int timeoutMs) {
    std::array<epoll_event, 64> events;
    const int count =
        epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeoutMs);
    const size_t ready = count > 0 ? static_cast<size_t>(count) : 0;
    for (size_t i = 0; i < ready; ++i) {
      ids_[i] = events[i].data.u64;
      if (ids_[i] == kWoken) wake_.clear();
    }
    return std::span(ids_).first(ready);
  }

 private:
  EventSet(Fd epoll, EventFd wake) : epoll_(std::move(epoll)), wake_(std::move(wake)) {}

  Fd epoll_;
  EventFd wake_;
  std::array<uint64_t, 64> ids_{};
};

}  // namespace hmc
