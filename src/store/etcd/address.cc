#include "store/etcd/address.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"

namespace hmc::store::etcd {

namespace {

constexpr std::string_view kPlain = "etcd://";
constexpr std::string_view kEncrypted = "etcds://";
constexpr std::string_view kPort = ":2379";
constexpr std::string_view kPrefix = "hmc";
constexpr size_t kLongestPrefix = 256;

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// What the URL parser of an HTTP client would read as something else than a host and a port.
bool isPlainHost(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view(".-_:[]").find(c) != std::string_view::npos;
  });
}

bool hasPort(std::string_view member) {
  const size_t colon = member.rfind(':');
  if (colon == std::string_view::npos) return false;
  const size_t bracket = member.rfind(']');
  return bracket == std::string_view::npos || colon > bracket;
}

Status setting(Address& address, const std::string& url, std::string_view text) {
  const size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  std::string* const slot = name == "ca"     ? &address.ca
                            : name == "cert" ? &address.cert
                            : name == "key"  ? &address.key
                            : name == "user" ? &address.user
                                             : nullptr;
  if (!slot || equals == std::string_view::npos || equals + 1 == text.size()) {
    return error(Code::invalidArgument,
                 "the store {} has the setting {}: there are ca=FILE, cert=FILE, key=FILE and "
                 "user=NAME",
                 url, text);
  }
  *slot = text.substr(equals + 1);
  return Status();
}

Status checkSettings(const Address& address, const std::string& url) {
  if (!address.tls && !(address.ca + address.cert + address.key).empty()) {
    return error(Code::invalidArgument,
                 "the store {} has certificates without TLS: write etcds:// for TLS", url);
  }
  if (address.cert.empty() != address.key.empty()) {
    return error(Code::invalidArgument,
                 "the store {} has one of cert and key: a certificate of ours needs both", url);
  }
  return Status();
}

}  // namespace

Result<Address> Address::parse(const std::string& url) {
  Address address;
  address.tls = url.starts_with(kEncrypted);
  std::string_view rest(url);
  rest.remove_prefix((address.tls ? kEncrypted : kPlain).size());

  const size_t query = rest.find('?');
  if (query != std::string_view::npos) {
    for (const std::string_view part : split(rest.substr(query + 1), '&')) {
      HMC_TRY(setting(address, url, part));
    }
    rest = rest.substr(0, query);
  }
  HMC_TRY(checkSettings(address, url));

  const size_t slash = rest.find('/');
  std::string_view prefix = slash == std::string_view::npos ? "" : rest.substr(slash + 1);
  if (prefix.ends_with('/')) prefix.remove_suffix(1);
  if (prefix.size() > kLongestPrefix) {
    return error(Code::invalidArgument, "the store {} has a prefix of {} bytes: {} is the most",
                 url, prefix.size(), kLongestPrefix);
  }
  address.prefix = std::string(prefix.empty() ? kPrefix : prefix) + "/";

  for (const std::string_view member : split(rest.substr(0, slash), ',')) {
    if (!isPlainHost(member)) {
      return error(
          Code::invalidArgument,
          "the store {} has the member \"{}\": each must be host:port, with commas between", url,
          member);
    }
    address.members.push_back(fmt::format("{}://{}{}", address.tls ? "https" : "http", member,
                                          hasPort(member) ? "" : kPort));
  }
  return address;
}

}  // namespace hmc::store::etcd
