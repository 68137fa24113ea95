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

// Level-triggered: what came while it was closed shows at once. Fails only when the kernel has no
// memory; then the next look of somebody who waits reads, or the lease ends the channel.
void ReadGate::open() {
  if (open_) return;
  epoll_event event{};
  event.events = EPOLLIN;
  open_ = epoll_ctl(set_.get(), EPOLL_CTL_ADD, socket_, &event) == 0;
}

// Taken out of the set, not only ignored by it: a socket that nobody watches is quicker.
void ReadGate::close() {
  if (!open_) return;
  epoll_ctl(set_.get(), EPOLL_CTL_DEL, socket_, nullptr);
  open_ = false;
}

}  // namespace hmc
