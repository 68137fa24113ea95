#include "store/journal_records.h"

#include <algorithm>

#include "base/codec.h"
#include "base/error.h"

namespace hmc::store {

namespace {

enum class Kind : uint8_t { set = 1, removed, granted, ended };

constexpr size_t kHead = 2 * sizeof(uint32_t) + sizeof(uint64_t);

// FNV-1a.
uint64_t checksum(std::string_view bytes) {
  uint64_t sum = 14695981039346656037u;
  for (unsigned char byte : bytes) sum = (sum ^ byte) * 1099511628211u;
  return sum;
}

Writer begin(Kind kind) {
  Writer writer;
  writer.u8(static_cast<uint8_t>(kind));
  return writer;
}

std::string finish(const Writer& change) {
  const auto size = static_cast<uint32_t>(change.bytes().size());
  return Writer().u32(size).u32(~size).u64(checksum(change.bytes())).raw(change.bytes()).take();
}

Status apply(std::string_view change, State& state, State::Time now) {
  Reader in(change);
  const auto kind = static_cast<Kind>(in.u8());
  const bool ofKey = kind == Kind::set || kind == Kind::removed;
  const std::string key = ofKey ? in.string() : std::string();
  const std::string value = kind == Kind::set ? in.string() : std::string();
  const uint64_t lease = kind == Kind::removed ? State::kNoLease : in.u64();
  const std::chrono::milliseconds ttl(kind == Kind::granted ? in.u64() : 0);
  HMC_TRY(in.finish("a record"));
  switch (kind) {
    case Kind::set:
      return state.set(key, value, lease);
    case Kind::removed:
      state.remove(key);
      return Status();
    case Kind::granted:
      return state.grant(lease, ttl, now);
    case Kind::ended:
      state.revoke(lease);
      return Status();
  }
  return error(Code::unsupported, "a record of kind {}, which this version does not know",
               static_cast<int>(kind));
}

bool isZero(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0; });
}

}  // namespace

std::string recordOfSet(std::string_view key, std::string_view value, uint64_t lease) {
  return finish(begin(Kind::set).string(key).string(value).u64(lease));
}

std::string recordOfRemoved(std::string_view key) {
  return finish(begin(Kind::removed).string(key));
}

std::string recordOfGranted(uint64_t lease, std::chrono::milliseconds ttl) {
  return finish(begin(Kind::granted).u64(lease).u64(static_cast<uint64_t>(ttl.count())));
}

std::string recordOfEnded(uint64_t lease) {
  return finish(begin(Kind::ended).u64(lease));
}

Result<size_t> replay(std::string_view bytes, State& state, State::Time now) {
  if (!bytes.starts_with(kJournalHeader)) {
    // A file that was being made.
    if (kJournalHeader.starts_with(bytes)) return size_t{0};
    return error(Code::failed, "it does not begin like a store's journal of version 1");
  }
  size_t at = kJournalHeader.size();
  while (at < bytes.size()) {
    const std::string_view rest = bytes.substr(at);
    if (rest.size() < kHead) return at;
    Reader head(rest.substr(0, kHead));
    const uint32_t size = head.u32();
    const bool sound = head.u32() == ~size;
    const uint64_t sum = head.u64();
    // A host that crashed may have made the file longer and not yet filled it.
    if (!sound && isZero(rest)) return at;
    if (sound && size > rest.size() - kHead) return at;
    const std::string_view change = sound ? rest.substr(kHead, size) : std::string_view();
    const bool last = sound && kHead + size == rest.size();
    if (!sound || checksum(change) != sum) {
      if (last) return at;
      return error(Code::failed, "it is damaged at byte {} of {}", at, bytes.size());
    }
    const Status applied = apply(change, state, now);
    if (!applied.ok()) {
      return applied.within(fmt::format("the record at byte {} of {}", at, bytes.size()));
    }
    at += kHead + size;
  }
  return at;
}

}  // namespace hmc::store
