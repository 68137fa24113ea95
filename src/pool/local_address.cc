#include "pool/local_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <memory>

#include "base/error.h"
#include "base/fd.h"

namespace hmc::pool {

namespace {

// The host of "tcp://host:port" or "etcd://host:port,.../prefix?settings", with or without a port.
std::string hostOf(const std::string& url) {
  const size_t begin = url.find("://") + 3;
  const std::string first = url.substr(begin, url.find_first_of(",/?", begin) - begin);
  if (first.starts_with('[')) return first.substr(1, first.find(']') - 1);
  return first.substr(0, first.rfind(':'));
}

// A datagram socket that is connected sends nothing, but the kernel has chosen its address.
Result<std::string> addressTowards(const addrinfo& where) {
  Fd socket(::socket(where.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  if (!socket || connect(socket.get(), where.ai_addr, where.ai_addrlen) != 0 ||
      getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) {
    return errnoStatus("find the address from which this host reaches the store");
  }
  char text[NI_MAXHOST];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&own), size, text, sizeof(text), nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return error(Code::failed, "an address of this host has no numbers");
  }
  return std::string(text);
}

}  // namespace

Result<std::string> ownAddressFor(const std::string& store) {
  if (store.rfind("unix://", 0) == 0 || store.find("://") == std::string::npos) {
    return std::string("127.0.0.1");
  }
  const std::string host = hostOf(store);
  addrinfo* found = nullptr;
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  const int failed = getaddrinfo(host.c_str(), "9", &hints, &found);
  if (failed != 0) {
    return error(Code::notFound, "the store's host \"{}\" is unknown: {}", host,
                 gai_strerror(failed));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> freed(found, freeaddrinfo);
  return addressTowards(*found);
}

Result<std::string> listenAddressFor(const std::string& store) {
  HMC_ASSIGN(const std::string address, ownAddressFor(store));
  const bool brackets = address.find(':') != std::string::npos;
  return fmt::format("tcp://{}{}{}:0", brackets ? "[" : "", address, brackets ? "]" : "");
}

}  // namespace hmc::pool
