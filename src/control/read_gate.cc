#include "control/read_gate.h"

#include <sys/epoll.h>

#include "base/error.h"

namespace hmc {

Result<std::unique_ptr<ReadGate>> ReadGate::create(int socket) {
  Fd set(epoll_create1(EPOLL_CLOEXEC));
  if (!set) return errnoStatus("make a set of descriptors");
  epoll_event event{};
  event.events = EPOLLIN;
  if (epoll_ctl(set.get(), EPOLL_CTL_ADD, socket, &event) != 0) {
    return errnoStatus("watch a control connection");
  }
  return std::unique_ptr<ReadGate>(new ReadGate(std::move(set), socket));
}

void ReadGate::open() {
  if (!open_) want(EPOLLIN);
  open_ = true;
}

void ReadGate::close() {
  if (open_) want(0);
  open_ = false;
}

// Cannot fail for a descriptor that is in the set.
void ReadGate::want(uint32_t events) {
  epoll_event event{};
  event.events = events;
  epoll_ctl(set_.get(), EPOLL_CTL_MOD, socket_, &event);
}

}  // namespace hmc
