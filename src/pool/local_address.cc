#include "pool/local_address.h"

#include "base/error.h"
#include "base/own_address.h"

namespace hmc::pool {

namespace {

// The host of "tcp://host:port" or "etcd://host:port,.../prefix?settings", with or without a port.
std::string hostOf(const std::string& url) {
  const size_t begin = url.find("://") + 3;
  const std::string first = url.substr(begin, url.find_first_of(",/?", begin) - begin);
  if (first.starts_with('[')) return first.substr(1, first.find(']') - 1);
  return first.substr(0, first.rfind(':'));
}

}  // namespace

Result<std::string> ownAddressFor(const std::string& store) {
  if (store.rfind("unix://", 0) == 0 || store.find("://") == std::string::npos) {
    return std::string("127.0.0.1");
  }
  return ownAddressTowards(hostOf(store));
}

Result<std::string> listenAddressFor(const std::string& store) {
  HMC_ASSIGN(const std::string address, ownAddressFor(store));
  const bool brackets = address.find(':') != std::string::npos;
  return fmt::format("tcp://{}{}{}:0", brackets ? "[" : "", address, brackets ? "]" : "");
}

}  // namespace hmc::pool
