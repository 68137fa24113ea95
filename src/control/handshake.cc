#include "control/handshake.h"

#include <algorithm>

#include "base/codec.h"
#include "base/cookie.h"
#include "base/error.h"
#include "base/proof.h"
#include "base/random.h"
#include "base/text.h"
#include "control/frame.h"

namespace hmc::control {

namespace {

constexpr uint32_t kMagic = 0x31434d48;  // "HMC1"
// What CHALLENGE says of the acceptor's secret.
constexpr uint8_t kHasSecret = 1;
constexpr uint8_t kIsCookie = 2;  // it is the user's cookie
constexpr uint8_t kAgain = 1;

// `hello` with what it is bound to in front.
std::string acceptorProof(const std::string& secret, const std::string& hello,
                          std::string_view challenge) {
  return proof(secret, "hmc acceptor" + hello + std::string(challenge));
}

std::string diallerProof(const std::string& secret, const std::string& hello,
                         const std::string& challenge, std::string_view ident) {
  return proof(secret, "hmc dialler" + hello + challenge + std::string(ident));
}

Secret::Kind kindOf(uint8_t flags) {
  if ((flags & kHasSecret) == 0) return Secret::Kind::none;
  return (flags & kIsCookie) != 0 ? Secret::Kind::cookie : Secret::Kind::shared;
}

uint8_t flagsOf(Secret::Kind kind) {
  if (kind == Secret::Kind::none) return 0;
  return kind == Secret::Kind::cookie ? kHasSecret | kIsCookie : kHasSecret;
}

Status otherUser(const std::string& who) {
  return error(Code::permissionDenied,
               "{} runs as another user, or has another cookie than this side ({}): without a "
               "secret only processes of one user reach each other over loopback; set HMC_SECRET "
               "to the same value at both sides",
               who, cookiePath());
}

Status differentSecrets(const std::string& who, Secret::Kind theirs, Secret::Kind ours) {
  if (theirs == Secret::Kind::shared)
    return error(Code::permissionDenied, "{} demands a secret and this side has none", who);
  if (ours == Secret::Kind::shared)
    return error(Code::permissionDenied, "this side demands a secret and {} has none", who);
  return error(Code::permissionDenied,
               "{} proves over loopback that it is of this process's user, and {} does not: give "
               "both the same HMC_COOKIE, or set HMC_SECRET",
               ours == Secret::Kind::cookie ? "this side" : who,
               ours == Secret::Kind::cookie ? who : "this side");
}

}  // namespace

std::string encodeWelcome(const Welcome& welcome) {
  return Writer()
      .string(welcome.name)
      .string(welcome.attributes)
      .string(welcome.exchange)
      .string(welcome.token)
      .take();
}

Result<Welcome> decodeWelcome(std::string_view payload) {
  Reader reader(payload);
  Welcome welcome;
  welcome.name = printable(reader.string());
  welcome.attributes = reader.string();
  welcome.exchange = reader.string();
  welcome.token = reader.string();
  HMC_TRY(reader.finish("WELCOME"));
  return welcome;
}

std::string encodeStatus(const Status& status) {
  return Writer().u8(static_cast<uint8_t>(status.code())).string(status.message()).take();
}

Status decodeStatus(std::string_view payload) {
  Reader reader(payload);
  Code code = decodeCode(reader.u8());
  std::string sentence = reader.string();
  if (!reader.finish("a reason").ok()) return error(Code::failed, "it gave a malformed reason");
  return Status(code, printable(sentence));
}

Code decodeCode(uint8_t code) {
  bool known = code > 0 && code <= static_cast<uint8_t>(Code::failed);
  return known ? static_cast<Code>(code) : Code::failed;
}

// Its header ended behind `flags`.
bool beginsOlderHello(std::string_view bytes) {
  constexpr size_t kOlderHeader = 8;
  if (bytes.size() < kOlderHeader + sizeof(kMagic)) return false;
  Reader reader(bytes);
  reader.u32();
  const bool hello = reader.u8() == static_cast<uint8_t>(FrameType::hello);
  reader.raw(kOlderHeader - sizeof(uint32_t) - sizeof(uint8_t));
  return hello && reader.u32() == kMagic;
}

std::string olderRefusal(const Status& why) {
  const std::string payload = encodeStatus(why);
  return Writer()
      .u32(static_cast<uint32_t>(payload.size()))
      .u32(static_cast<uint32_t>(FrameType::refused))  // detail and flags are 0
      .raw(payload)
      .take();
}

// The nonces of both sides make it one channel's, the secret makes it theirs alone.
std::string Handshake::credentials() const {
  return proof(secret_, "hmc credentials" + binding_ + hello_ + challenge_ + ident_);
}

uint32_t Handshake::encodeLease(std::chrono::milliseconds lease) {
  return static_cast<uint32_t>(std::min<int64_t>(lease.count(), UINT32_MAX));
}

Status Handshake::takeLease(uint32_t theirs) {
  if (theirs == 0) return error(Code::invalidArgument, "a lease of 0 ms: it must be positive");
  lease_ = std::min(lease_, std::chrono::milliseconds(theirs));
  return Status();
}

DiallerHandshake::DiallerHandshake(Secret secret, std::string who, std::chrono::milliseconds lease)
    : Handshake(std::move(secret), lease), who_(std::move(who)) {
  hello_ = Writer()
               .u32(kMagic)
               .u16(kOldestVersion)
               .u16(kNewestVersion)
               .raw(randomBytes(kNonceSize))
               .u32(encodeLease(lease))
               .take();
}

Result<std::string> DiallerHandshake::takeChallenge(std::string_view payload) {
  Reader reader(payload);
  uint16_t version = reader.u16();
  const Secret::Kind kind = kindOf(reader.u8());
  reader.raw(kNonceSize);
  std::string id(reader.raw(kIdSize));
  const uint32_t lease = reader.u32();
  size_t covered = payload.size() - reader.left();
  std::string theirs = reader.string();
  // First: another version may be of another length.
  if (payload.size() >= sizeof(version) && (version < kOldestVersion || version > kNewestVersion)) {
    return error(Code::unsupported,
                 "{} chose control protocol version {}, this side speaks {} to {}", who_, version,
                 kOldestVersion, kNewestVersion);
  }
  HMC_TRY(reader.finish("CHALLENGE").within(who_));
  if (kind != kind_) return differentSecrets(who_, kind, kind_);
  challenge_ = std::string(payload.substr(0, covered));
  if (hasSecret() && !sameProof(theirs, acceptorProof(secret_, binding_ + hello_, challenge_))) {
    if (kind == Secret::Kind::cookie) return otherUser(who_);
    return error(Code::permissionDenied, "{} has another secret than this side", who_);
  }
  HMC_TRY(takeLease(lease).within(who_));
  return id;
}

std::string DiallerHandshake::ident(const Ident& ident) {
  std::string words = Writer()
                          .raw(ident.id)
                          .u8(ident.again ? kAgain : 0)
                          .string(ident.name)
                          .string(ident.attributes)
                          .string(ident.hostId)
                          .take();
  std::string mine =
      secret_.empty() ? "" : diallerProof(secret_, binding_ + hello_, challenge_, words);
  ident_ = Writer().string(mine).raw(words).take();
  return ident_;
}

// A later version may append fields to HELLO: what follows ours is proved but not read.
Result<std::string> AcceptorHandshake::takeHello(std::string_view payload) {
  Reader reader(payload);
  uint32_t magic = reader.u32();
  uint16_t oldest = reader.u16();
  uint16_t newest = reader.u16();
  reader.raw(kNonceSize);
  const bool truncated = reader.failed();
  const uint32_t lease = reader.u32();  // earlier versions have none
  if (truncated || magic != kMagic || oldest > newest) {
    return error(Code::invalidArgument, "the dialler does not speak this protocol");
  }
  if (oldest > kNewestVersion || newest < kOldestVersion) {
    return error(Code::unsupported,
                 "the dialler speaks control protocol versions {} to {}, the peer {} to {}", oldest,
                 newest, kOldestVersion, kNewestVersion);
  }
  const auto ours = lease_;
  HMC_TRY(takeLease(lease));
  hello_ = std::string(payload);
  challenge_ = Writer()
                   .u16(std::min(newest, kNewestVersion))
                   .u8(flagsOf(kind_))
                   .raw(randomBytes(kNonceSize))
                   .raw(id_)
                   .u32(encodeLease(ours))
                   .take();
  std::string mine = secret_.empty() ? "" : acceptorProof(secret_, binding_ + hello_, challenge_);
  return challenge_ + Writer().string(mine).take();
}

Result<Ident> AcceptorHandshake::takeIdent(std::string_view payload) {
  Reader reader(payload);
  std::string theirs = reader.string();
  std::string_view words = payload.substr(payload.size() - reader.left());
  if (hasSecret() &&
      !sameProof(theirs, diallerProof(secret_, binding_ + hello_, challenge_, words))) {
    if (kind_ == Secret::Kind::cookie) return otherUser("the peer");
    return error(Code::permissionDenied, "the peer demands a secret and the dialler has {}",
                 theirs.empty() ? "none" : "another");
  }
  Ident ident;
  ident.id = std::string(reader.raw(kIdSize));
  ident.again = (reader.u8() & kAgain) != 0;
  ident.name = printable(reader.string());
  ident.attributes = reader.string();
  ident.hostId = reader.string();
  HMC_TRY(reader.finish("IDENT"));
  ident_ = std::string(payload);
  return ident;
}

}  // namespace hmc::control
