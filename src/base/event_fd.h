#pragma once

#include <sys/eventfd.h>

#include "base/error.h"
#include "base/fd.h"

namespace hmc {

// A descriptor that one thread waits for and others make readable. Safe from any thread.
class EventFd {
 public:
  static Result<EventFd> create(const char* whose) {
    Fd fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!fd) return errnoStatus(fmt::format("making an eventfd for {}", whose));
    return EventFd(std::move(fd));
  }

  int get() const { return fd_.get(); }
  void signal() const { eventfd_write(fd_.get(), 1); }
  // True when it was signalled since the last call.
  bool clear() const {
    eventfd_t ignored;
    return eventfd_read(fd_.get(), &ignored) == 0;
  }

 private:
  explicit EventFd(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace hmc
