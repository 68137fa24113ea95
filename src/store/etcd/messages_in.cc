#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "store/etcd/base64.h"
#include "store/etcd/messages.h"

// What etcd says. Nothing of it is trusted to be there, or to be of the right type.
namespace hmc::store::etcd {

namespace {

using Json = nlohmann::json;

constexpr size_t kMostShown = 200;
constexpr int kCancelled = 1;
constexpr int kDeadlineExceeded = 4;
constexpr int kUnavailable = 14;

std::string shown(std::string_view text) {
  std::string clean(text.substr(0, kMostShown));
  for (char& c : clean) {
    if (c < ' ' || c > '~') c = ' ';
  }
  return clean;
}

Status strange(const char* what) {
  return error(Code::failed, "what answers as etcd is none: {}", what);
}

Result<Json> object(std::string_view text) {
  Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (json.is_object()) return json;
  return error(Code::failed, "what answers as etcd is none: it said \"{}\"", shown(text));
}

// Null when it is not there.
const Json* field(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() ? nullptr : &*found;
}

template <class Number>
Status read(const Json& json, const char* name, Number& number) {
  const Json* value = field(json, name);
  if (!value) return Status();
  if (value->is_number_integer()) {
    number = value->get<Number>();
    return Status();
  }
  const auto* text = value->get_ptr<const std::string*>();
  if (!text) return strange("a number is of another type");
  const auto [end, problem] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (problem == std::errc() && end == text->data() + text->size()) return Status();
  return strange("a number has other digits");
}

Status read(const Json& json, const char* name, bool& flag) {
  const Json* value = field(json, name);
  if (!value) return Status();
  if (!value->is_boolean()) return strange("a flag is of another type");
  flag = value->get<bool>();
  return Status();
}

Status read(const Json& json, const char* name, std::string& text) {
  const Json* value = field(json, name);
  if (!value) return Status();
  if (!value->is_string()) return strange("a text is of another type");
  text = value->get<std::string>();
  return Status();
}

Status readBytes(const Json& json, const char* name, std::string& bytes) {
  const Json* value = field(json, name);
  if (!value) return Status();
  const auto* text = value->get_ptr<const std::string*>();
  auto decoded = text ? fromBase64(*text) : std::nullopt;
  if (!decoded) return strange("bytes are not in base64");
  bytes = *std::move(decoded);
  return Status();
}

Status readHeader(const Json& json, Position& at) {
  const Json* header = field(json, "header");
  if (!header || !header->is_object()) return strange("an answer has no header");
  HMC_TRY(read(*header, "revision", at.revision));
  return read(*header, "raft_term", at.term);
}

Result<KeyValue> readKeyValue(const Json& json) {
  if (!json.is_object()) return strange("a key is of another type");
  KeyValue kv;
  HMC_TRY(readBytes(json, "key", kv.key));
  HMC_TRY(readBytes(json, "value", kv.value));
  HMC_TRY(read(json, "mod_revision", kv.modRevision));
  int64_t lease = 0;
  HMC_TRY(read(json, "lease", lease));
  kv.lease = static_cast<uint64_t>(lease);
  return kv;
}

Result<std::vector<KeyValue>> readKeyValues(const Json& json) {
  std::vector<KeyValue> kvs;
  const Json* list = field(json, "kvs");
  if (!list) return kvs;
  if (!list->is_array()) return strange("a list of keys is of another type");
  for (const Json& item : *list) {
    HMC_ASSIGN(KeyValue kv, readKeyValue(item));
    kvs.push_back(std::move(kv));
  }
  return kvs;
}

// gRPC's number and the sentence, wherever this version of the gateway puts them.
Refusal refusalIn(const Json& json) {
  const Json* inner = field(json, "error");
  const Json& from = inner && inner->is_object() ? *inner : json;
  Refusal refusal;
  if (!read(from, "grpc_code", refusal.code).ok() || !read(from, "code", refusal.code).ok()) {
    refusal.code = Refusal::kUnknown;
  }
  (void)read(from, "message", refusal.message);
  if (refusal.message.empty()) (void)read(from, "error", refusal.message);
  refusal.message = refusal.message.empty() ? "it gives no reason" : shown(refusal.message);
  return refusal;
}

// One message of a stream.
Result<Json> resultIn(std::string_view line) {
  HMC_ASSIGN(Json json, object(line));
  if (const Json* result = field(json, "result"); result && result->is_object()) return *result;
  if (field(json, "error")) return refusalIn(json).status();
  return strange("a stream has neither a result nor an error");
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

Result<RangeAnswer> readRange(std::string_view answer) {
  HMC_ASSIGN(const Json json, object(answer));
  RangeAnswer range;
  HMC_TRY(readHeader(json, range.at));
  HMC_ASSIGN(range.kvs, readKeyValues(json));
  return range;
}

Result<TxnAnswer> readTxn(std::string_view answer) {
  HMC_ASSIGN(const Json json, object(answer));
  TxnAnswer txn;
  Position at;
  HMC_TRY(readHeader(json, at));
  HMC_TRY(read(json, "succeeded", txn.succeeded));
  if (txn.succeeded) return txn;
  const Json* responses = field(json, "responses");
  if (!responses || !responses->is_array() || responses->size() != 1 ||
      !(*responses)[0].is_object())
    return strange("a transaction has no answer for its one request");
  const Json* range = field((*responses)[0], "response_range");
  if (!range || !range->is_object()) return strange("a transaction answers another request");
  HMC_ASSIGN(auto kvs, readKeyValues(*range));
  if (!kvs.empty()) txn.found = std::move(kvs.front());
  return txn;
}

Result<int64_t> readKeepAlive(std::string_view answer) {
  HMC_ASSIGN(const Json json, resultIn(answer));
  int64_t seconds = 0;
  HMC_TRY(read(json, "TTL", seconds));
  return seconds;
}

Result<WatchAnswer> readWatch(std::string_view line) {
  HMC_ASSIGN(const Json json, resultIn(line));
  WatchAnswer watch;
  HMC_TRY(readHeader(json, watch.at));
  HMC_TRY(read(json, "created", watch.created));
  HMC_TRY(read(json, "canceled", watch.cancelled));
  HMC_TRY(read(json, "cancel_reason", watch.reason));
  int64_t compacted = 0;
  HMC_TRY(read(json, "compact_revision", compacted));
  watch.compacted = compacted > 0;
  const Json* events = field(json, "events");
  if (!events) return watch;
  if (!events->is_array()) return strange("a list of events is of another type");
  for (const Json& item : *events) {
    const Json* kv = item.is_object() ? field(item, "kv") : nullptr;
    if (!kv) return strange("an event has no key");
    WatchAnswer::Event event;
    HMC_ASSIGN(event.kv, readKeyValue(*kv));
    std::string type;
    HMC_TRY(read(item, "type", type));
    event.removed = type == "DELETE";
    watch.events.push_back(std::move(event));
  }
  return watch;
}

Result<std::string> readToken(std::string_view answer) {
  HMC_ASSIGN(const Json json, object(answer));
  std::string token;
  HMC_TRY(read(json, "token", token));
  // It becomes a line of a header.
  const bool printable =
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (token.empty() || !printable) return strange("it gives no token for a password");
  return token;
}

Refusal readRefusal(long httpCode, std::string_view answer) {
  const Json json = Json::parse(answer.begin(), answer.end(), nullptr, false);
  if (json.is_object()) return refusalIn(json);
  Refusal refusal;
  refusal.message = fmt::format("HTTP status {}, \"{}\"", httpCode, shown(answer));
  if (httpCode == 404) refusal.message += "; it needs etcd 3.4 or newer with its gRPC gateway";
  if (httpCode == 502 || httpCode == 503 || httpCode == 504) refusal.code = kUnavailable;
  return refusal;
}

bool Refusal::isPassing() const {
  return code == kUnavailable || code == kDeadlineExceeded || code == kCancelled;
}

bool Refusal::isBeforeAnythingWasDone() const {
  return message == "etcdserver: no leader" || asksForToken();
}

bool Refusal::asksForToken() const {
  return code == kUnauthenticated || has(message, "user name is empty") ||
         has(message, "revision of auth store is old");
}

Status Refusal::status() const {
  if (asksForToken()) {
    return error(Code::permissionDenied, "etcd wants a user and a password: {}", message);
  }
  if (isPassing()) return error(Code::disconnected, "etcd cannot do it now: {}", message);
  if (has(message, "request is too large")) {
    return error(Code::invalidArgument,
                 "etcd refuses a value of this size: {}; start etcd with a larger "
                 "--max-request-bytes",
                 message);
  }
  if (has(message, "authentication failed")) {
    return error(Code::permissionDenied, "etcd refuses our user or password: {}", message);
  }
  switch (code) {
    case kInvalidArgument:
      return error(Code::invalidArgument, "etcd refuses it: {}", message);
    case kNotFound:
      return error(Code::notFound, "etcd does not find it: {}", message);
    case kPermissionDenied:
      return error(Code::permissionDenied, "etcd does not let this user do it: {}", message);
    case kExhausted:
      return error(Code::exhausted, "etcd is full, or has too much to do: {}", message);
    case kFailedPrecondition:
      return error(Code::alreadyExists, "etcd refuses it: {}", message);
    case kOutOfRange:
      return error(Code::outOfRange, "etcd refuses it: {}", message);
    default:
      return error(Code::failed, "etcd failed: {}", message);
  }
}

}  // namespace hmc::store::etcd
