#include "transport/tcp/local_peer.h"

#include "base/fd_exchange.h"
#include "transport/tcp/socket.h"

namespace hmc::tcp {

// A connection between two sockets of one address is within one network namespace, and so is the
// exchange. Elsewhere nobody listens under that name, which would prove nothing.
LocalPeer::LocalPeer(int fd, std::string exchange) {
  if (hasOneAddress(fd)) exchange_ = std::move(exchange);
}

bool LocalPeer::gone() const {
  return known() && FdExchange::gone(exchange_);
}

}  // namespace hmc::tcp
