#include "store/state.h"

#include <charconv>

#include "base/error.h"

namespace hmc::store {

namespace {

constexpr std::chrono::hours kLongestTtl{24};

Result<int64_t> decimal(std::string_view key, std::string_view text) {
  int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc() && end == text.data() + text.size()) return number;
  return error(Code::invalidArgument,
               "key {} has a value of {} bytes that is no decimal number of 64 bits to add to", key,
               text.size());
}

}  // namespace

Result<int64_t> sumOf(std::string_view key, std::string_view value, int64_t amount) {
  HMC_ASSIGN(const int64_t before, decimal(key, value));
  int64_t sum = 0;
  if (!__builtin_add_overflow(before, amount, &sum)) return sum;
  return error(Code::outOfRange, "adding {} to the {} of key {} passes 64 bits", amount, before,
               key);
}

Status checkKey(std::string_view key) {
  if (key.empty()) return error(Code::invalidArgument, "a key must have at least one byte");
  if (key.size() <= kLargestKey) return Status();
  return error(Code::invalidArgument, "a key of {} bytes: {} is the most", key.size(), kLargestKey);
}

Status checkPrefix(std::string_view prefix) {
  return prefix.empty() ? Status() : checkKey(prefix);
}

Status checkValue(std::string_view value) {
  if (value.size() <= kLargestValue) return Status();
  return error(Code::invalidArgument, "a value of {} bytes: {} is the most", value.size(),
               kLargestValue);
}

Status checkTtl(std::chrono::milliseconds ttl) {
  if (ttl.count() > 0 && ttl <= kLongestTtl) return Status();
  return error(Code::invalidArgument, "a lease of {} ms: it must be 1 ms to 24 hours", ttl.count());
}

Bytes State::get(std::string_view key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() ? nullptr : found->second.bytes;
}

std::vector<Record> State::list(std::string_view prefix) const {
  std::vector<Record> records;
  for (auto at = keys_.lower_bound(prefix); at != keys_.end(); ++at) {
    if (!at->first.starts_with(prefix)) break;
    records.push_back({at->first, at->second.bytes});
  }
  return records;
}

Status State::set(std::string_view key, std::string_view value, uint64_t lease) {
  HMC_TRY(checkLease(lease));
  return put(key, std::string(value), lease);
}

Result<Swap> State::compareAndSet(std::string_view key, std::optional<std::string_view> expected,
                                  std::optional<std::string_view> desired, uint64_t lease) {
  HMC_TRY(checkKey(key));
  HMC_TRY(checkLease(lease));
  const Bytes before = get(key);
  Swap swap;
  if (before) swap.found = *before;
  if (expected.has_value() != swap.found.has_value() || (expected && *expected != *swap.found)) {
    return swap;
  }
  swap.done = true;
  if (desired) {
    HMC_TRY(put(key, std::string(*desired), lease));
  } else {
    remove(key);
  }
  return swap;
}

Result<Swap> State::claim(std::string_view key, std::string_view value, uint64_t lease) {
  HMC_TRY(checkLease(lease));
  const auto found = keys_.find(key);
  Swap swap;
  if (found != keys_.end()) swap.found = *found->second.bytes;
  swap.done = !swap.found || (lease != kNoLease && found->second.lease == lease);
  if (swap.done && swap.found != value) HMC_TRY(put(key, std::string(value), lease));
  return swap;
}

Result<int64_t> State::add(std::string_view key, int64_t amount) {
  const auto found = keys_.find(key);
  const bool there = found != keys_.end();
  HMC_ASSIGN(const int64_t sum,
             sumOf(key, there ? std::string_view(*found->second.bytes) : "0", amount));
  HMC_TRY(put(key, std::to_string(sum), there ? found->second.lease : kNoLease));
  return sum;
}

Result<uint64_t> State::append(std::string_view key, std::string_view bytes) {
  const auto found = keys_.find(key);
  const uint64_t lease = found == keys_.end() ? kNoLease : found->second.lease;
  std::string value;
  if (found != keys_.end()) {
    value.reserve(found->second.bytes->size() + bytes.size());
    value = *found->second.bytes;
  }
  value.append(bytes);
  const uint64_t size = value.size();
  HMC_TRY(put(key, std::move(value), lease));
  return size;
}

void State::remove(std::string_view key) {
  const auto found = keys_.find(key);
  if (found != keys_.end()) erase(found);
}

void State::removeAll(std::string_view prefix) {
  auto at = keys_.lower_bound(prefix);
  while (at != keys_.end() && at->first.starts_with(prefix)) at = erase(at);
}

Status State::put(std::string_view key, std::string bytes, uint64_t lease) {
  HMC_TRY(checkKey(key));
  HMC_TRY(checkValue(bytes));
  auto found = keys_.find(key);
  const size_t before = found == keys_.end() ? 0 : key.size() + found->second.bytes->size();
  const size_t after = bytes_ - before + key.size() + bytes.size();
  if (after > limits_.bytes) {
    return error(Code::exhausted,
                 "the store is full: key {} with {} bytes would make it {} bytes, and {} is the "
                 "most; remove keys, or give the server more",
                 key, bytes.size(), after, limits_.bytes);
  }
  bytes_ = after;
  if (found == keys_.end()) found = keys_.try_emplace(std::string(key)).first;
  Value& value = found->second;
  if (value.lease != lease) detach(found->first, value.lease);
  if (lease != kNoLease) leases_.at(lease).keys.insert(found->first);
  value = {std::make_shared<const std::string>(std::move(bytes)), lease};
  if (recorder_) recorder_->set(found->first, *value.bytes, lease);
  announce({Change::Kind::set, found->first, value.bytes});
  return Status();
}

void State::tellAll(Recorder& recorder, const std::function<void()>& then) const {
  for (const auto& [id, granted] : leases_) {
    recorder.granted(id, granted.ttl);
    then();
  }
  for (const auto& [key, value] : keys_) {
    recorder.set(key, *value.bytes, value.lease);
    then();
  }
}

State::Keys::iterator State::erase(Keys::iterator at) {
  bytes_ -= at->first.size() + at->second.bytes->size();
  detach(at->first, at->second.lease);
  const std::string key = at->first;
  at = keys_.erase(at);
  if (recorder_) recorder_->removed(key);
  announce({Change::Kind::removed, key, nullptr});
  return at;
}

}  // namespace hmc::store
