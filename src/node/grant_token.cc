#include "node/grant_token.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/codec.h"
#include "base/error.h"
#include "base/proof.h"
#include "base/text.h"

namespace hmc {

namespace {

constexpr uint32_t kMagic = 0x31474d48;  // "HMG1"
constexpr size_t kLongest = size_t{64} << 10;

std::string encodeHead(const GrantToken& token) {
  return Writer()
      .u32(kMagic)
      .raw(token.owner)
      .u64(token.number)
      .string(token.region)
      .raw(token.id)
      .take();
}

std::string macOfHead(const std::string& key, const GrantToken& token) {
  return proof(key, "hmc grant" + encodeHead(token));
}

const char* words(Access access) {
  return access == Access::readWrite ? "reading and writing" : "reading";
}

// Both ends of time are the same to a clock that counts nanoseconds: 292 years.
int64_t endOf(std::chrono::nanoseconds lifetime) {
  const int64_t now = wallClock();
  const int64_t most = std::numeric_limits<int64_t>::max() - now;
  return now + std::min<int64_t>(lifetime.count(), most);
}

bool endsLater(int64_t one, int64_t other) {
  return other != 0 && (one == 0 || one > other);
}

Status checkWithin(const GrantLimit& inner, const GrantLimit& outer) {
  const bool inside = inner.size > 0 && inner.offset >= outer.offset &&
                      fits(inner.offset - outer.offset, inner.size, outer.size);
  const bool widens = !inside || inner.access > outer.access ||
                      endsLater(inner.expires, outer.expires) ||
                      (!outer.holder.empty() && inner.holder != outer.holder);
  if (!widens) return Status();
  return error(Code::permissionDenied, "a grant allows more than the one that it was made of");
}

Result<GrantLimit> narrowed(const GrantLimit& from, const GrantOptions& options) {
  GrantLimit limit = from;
  const uint64_t size =
      options.size == 0 && options.offset < from.size ? from.size - options.offset : options.size;
  if (size == 0 || !fits(options.offset, size, from.size)) {
    return error(Code::outOfRange, "a grant of {} bytes at offset {} of {} bytes", size,
                 options.offset, from.size);
  }
  limit.offset = from.offset + options.offset;
  limit.size = size;
  limit.access = options.access.value_or(from.access);
  if (limit.access > from.access) {
    return error(Code::permissionDenied, "a grant for {} cannot be made of one for {}",
                 words(limit.access), words(from.access));
  }
  if (options.lifetime.count() < 0) {
    return error(Code::invalidArgument, "a grant for {} ns: it must be positive, or 0 for no end",
                 options.lifetime.count());
  }
  if (options.lifetime.count() > 0) {
    const int64_t end = endOf(options.lifetime);
    if (endsLater(from.expires, end)) limit.expires = end;
  }
  if (!options.peerId.empty()) limit.holder = holderOf(options.peerId);
  if (!from.holder.empty() && limit.holder != from.holder) {
    return error(Code::permissionDenied,
                 "this grant is for one peer alone and cannot be made one for another");
  }
  return limit;
}

Result<GrantLimit> readLimit(Reader& in) {
  GrantLimit limit;
  limit.offset = in.u64();
  limit.size = in.u64();
  const uint8_t access = in.u8();
  limit.expires = static_cast<int64_t>(in.u64());
  limit.holder = in.string();
  const bool sane = access <= static_cast<uint8_t>(Access::readWrite) && limit.expires >= 0 &&
                    (limit.holder.empty() || limit.holder.size() == kProofSize);
  if (!sane) return error(Code::invalidArgument, "the bytes of a grant have impossible values");
  limit.access = static_cast<Access>(access);
  return limit;
}

}  // namespace

std::string holderOf(const std::string& peerId) {
  return proof(peerId, "hmc grant holder");
}

int64_t wallClock() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

std::string GrantLimit::encode() const {
  return Writer()
      .u64(offset)
      .u64(size)
      .u8(static_cast<uint8_t>(access))
      .u64(static_cast<uint64_t>(expires))
      .string(holder)
      .take();
}

std::string GrantToken::encode() const {
  Writer out;
  out.raw(encodeHead(*this)).u8(static_cast<uint8_t>(limits.size()));
  for (const GrantLimit& limit : limits) out.raw(limit.encode());
  return out.raw(mac).take();
}

Result<GrantToken> GrantToken::decode(std::string_view bytes) {
  if (bytes.size() > kLongest) {
    return error(Code::invalidArgument, "a grant has {} bytes at the most, and these are {}",
                 kLongest, bytes.size());
  }
  Reader in(bytes);
  if (in.u32() != kMagic)
    return error(Code::invalidArgument, "{} bytes are not a grant of this version", bytes.size());
  GrantToken token;
  token.owner = in.raw(kIdSize);
  token.number = in.u64();
  token.region = in.string();
  token.id = in.raw(kIdSize);
  const size_t count = in.u8();
  if (count == 0 || count > kMostLimits) {
    return error(Code::invalidArgument, "a grant that was narrowed {} times: 0 to {} are possible",
                 static_cast<int>(count) - 1, kMostLimits - 1);
  }
  for (size_t i = 0; i < count && !in.failed(); ++i) {
    HMC_ASSIGN(auto limit, readLimit(in));
    token.limits.push_back(std::move(limit));
  }
  token.mac = in.raw(kProofSize);
  HMC_TRY(in.finish("a grant"));
  return token;
}

Result<GrantToken> GrantToken::make(const std::string& key, GrantToken head,
                                    const GrantLimit& whole, const GrantOptions& options) {
  HMC_ASSIGN(auto first, narrowed(whole, options));
  head.mac = proof(macOfHead(key, head), first.encode());
  head.limits = {std::move(first)};
  return head;
}

Result<GrantToken> GrantToken::narrow(const GrantOptions& options) const {
  if (limits.size() == kMostLimits) {
    return error(Code::exhausted,
                 "a grant can be narrowed {} times, and this one was: ask the owner of \"{}\" for "
                 "another",
                 kMostLimits - 1, printable(region));
  }
  HMC_ASSIGN(auto limit, narrowed(allowed(), options));
  GrantToken made = *this;
  made.mac = proof(mac, limit.encode());
  made.limits.push_back(std::move(limit));
  return made;
}

Status GrantToken::verify(const std::string& key) const {
  std::string expected = macOfHead(key, *this);
  for (const GrantLimit& limit : limits) expected = proof(expected, limit.encode());
  if (!sameProof(expected, mac))
    return error(Code::permissionDenied, "the grant is not genuine: its bytes were changed");
  for (size_t i = 1; i < limits.size(); ++i) HMC_TRY(checkWithin(limits[i], limits[i - 1]));
  return Status();
}

Status GrantToken::checkUse(const std::string& peerId, int64_t now) const {
  const GrantLimit& limit = allowed();
  if (!limit.holder.empty() && limit.holder != holderOf(peerId))
    return error(Code::permissionDenied, "the grant for region \"{}\" is another peer's", region);
  if (limit.expires == 0 || now < limit.expires) return Status();
  return error(Code::permissionDenied,
               "the grant for region \"{}\" has expired {} ms ago by its owner's clock: ask for "
               "another",
               region, (now - limit.expires) / 1000000);
}

Grant::Grant(GrantToken token)
    : token_(std::make_shared<const GrantToken>(std::move(token))), bytes_(token_->encode()) {}

Result<Grant> Grant::fromBytes(const std::string& bytes) {
  HMC_ASSIGN(auto token, GrantToken::decode(bytes));
  return Grant(std::move(token));
}

const std::string& Grant::name() const {
  return token_->region;
}
size_t Grant::size() const {
  return token_->allowed().size;
}
Access Grant::access() const {
  return token_->allowed().access;
}

std::optional<std::chrono::system_clock::time_point> Grant::expires() const {
  const int64_t end = token_->allowed().expires;
  if (end == 0) return std::nullopt;
  const std::chrono::nanoseconds time(end);
  return std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(time));
}

Result<Grant> Grant::narrow(const GrantOptions& options) const {
  HMC_ASSIGN(auto made, token_->narrow(options));
  return Grant(std::move(made));
}

}  // namespace hmc
