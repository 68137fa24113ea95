#pragma once

#include <string>

namespace hmc::tcp {

// The process at the other end of a connection, where that is on this host: then the kernel knows
// whether it still lives, whatever the connection says.
class LocalPeer {
 public:
  LocalPeer() = default;
  // Of a connection that is up, to who says that it listens in that FdExchange.
  LocalPeer(int fd, std::string exchange);

  bool known() const { return !exchange_.empty(); }
  // Known, and gone: it applies nothing more.
  bool gone() const;

 private:
  std::string exchange_;  // empty: it is elsewhere
};

}  // namespace hmc::tcp
