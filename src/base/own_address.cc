#include "base/own_address.h"

#include <netdb.h>
#include <sys/socket.h>

#include <memory>

#include "base/error.h"
#include "base/fd.h"

namespace hmc {

Result<std::string> ownAddressTowards(const std::string& host) {
  addrinfo* found = nullptr;
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  const int failed = getaddrinfo(host.c_str(), "9", &hints, &found);
  if (failed != 0)
    return error(Code::notFound, "the host \"{}\" is unknown: {}", host, gai_strerror(failed));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> freed(found, freeaddrinfo);

  // A datagram socket that is connected sends nothing, but the kernel has chosen its address.
  Fd socket(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  if (!socket || connect(socket.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) {
    return errnoStatus("find the address from which this host reaches " + host);
  }
  char text[NI_MAXHOST];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&own), size, text, sizeof(text), nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return error(Code::failed, "an address of this host has no numbers");
  }
  return std::string(text);
}

}  // namespace hmc
