#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "store/etcd/base64.h"
#include "store/etcd/messages.h"

// What we say. Base64 and numbers need no escapes, so the text is put together here; names and
// passwords do.
namespace hmc::store::etcd {

namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// etcd's are signed.
int64_t idOf(uint64_t lease) {
  return static_cast<int64_t>(lease);
}

std::string keysOf(const Range& range) {
  if (range.end.empty()) return fmt::format(R"("key":"{}")", base64(range.key));
  return fmt::format(R"("key":"{}","range_end":"{}")", base64(range.key), base64(range.end));
}

std::string comparison(const char* target, const char* field, const std::string& key,
                       const std::string& value) {
  return fmt::format(R"({{"result":"EQUAL","target":"{}","key":"{}","{}":"{}"}})", target,
                     base64(key), field, value);
}

}  // namespace

Range Range::beginningWith(std::string prefix) {
  std::string end = prefix;
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  if (end.empty()) return {std::move(prefix), std::string(1, '\0')};  // to the end of all keys
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return {std::move(prefix), std::move(end)};
}

std::string rangeRequest(const Range& range) {
  return "{" + keysOf(range) + "}";
}

std::string pingRequest(const std::string& key) {
  return "{" + keysOf(Range::of(key)) + R"(,"count_only":true})";
}

std::string putRequest(const std::string& key, std::string_view value, uint64_t lease) {
  return fmt::format(R"({{"key":"{}","value":"{}","lease":"{}"}})", base64(key), base64(value),
                     idOf(lease));
}

std::string deleteRequest(const Range& range) {
  return "{" + keysOf(range) + "}";
}

std::string grantRequest(uint64_t lease, std::chrono::milliseconds ttl) {
  return fmt::format(R"({{"ID":"{}","TTL":"{}"}})", idOf(lease),
                     std::chrono::ceil<std::chrono::seconds>(ttl).count());
}

std::string leaseRequest(uint64_t lease) {
  return fmt::format(R"({{"ID":"{}"}})", idOf(lease));
}

std::string watchRequest(const Range& range, int64_t revision) {
  return fmt::format(R"({{"create_request":{{{},"start_revision":"{}"}}}})", keysOf(range),
                     revision);
}

std::string authenticateRequest(const std::string& user, const std::string& password) {
  return fmt::format(R"({{"name":{},"password":{}}})", quoted(user), quoted(password));
}

Condition Condition::absent(const std::string& key) {
  return {comparison("CREATE", "create_revision", key, "0")};
}

Condition Condition::hasValue(const std::string& key, std::string_view value) {
  return {comparison("VALUE", "value", key, base64(value))};
}

Condition Condition::hasRevision(const std::string& key, int64_t modRevision) {
  return {comparison("MOD", "mod_revision", key, std::to_string(modRevision))};
}

Condition Condition::hasLease(const std::string& key, uint64_t lease) {
  return {comparison("LEASE", "lease", key, std::to_string(idOf(lease)))};
}

std::string txnRequest(const Condition& condition, const std::string& key,
                       std::optional<std::string_view> value, uint64_t lease) {
  const Range one = Range::of(key);
  const std::string then = value ? R"("request_put":)" + putRequest(key, *value, lease)
                                 : R"("request_delete_range":)" + deleteRequest(one);
  return fmt::format(R"({{"compare":[{}],"success":[{{{}}}],"failure":[{{"request_range":{}}}]}})",
                     condition.json, then, rangeRequest(one));
}

}  // namespace hmc::store::etcd
