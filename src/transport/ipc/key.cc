#include "transport/ipc/key.h"

#include <unistd.h>

#include <algorithm>

#include "base/codec.h"
#include "base/error.h"
#include "base/random.h"

namespace hmc::ipc {

namespace {

// The last byte is the version: both sides must have been built with the same layout.
constexpr uint32_t kKeyMagic = 0x4b435003;
constexpr uint32_t kAddressMagic = 0x41435001;
constexpr size_t kLongestName = 100;  // a unix socket's name has less room than this

Result<DeviceKind> kindOf(const std::string& name) {
  if (const DeviceKind* kind = findDeviceKind(name)) return *kind;
  return error(Code::invalidArgument, "an ipc key names an unknown kind of device");
}

std::vector<std::string> readTokens(Reader& in) {
  std::vector<std::string> tokens;
  for (uint32_t left = in.u32(); left > 0 && !in.failed(); --left) tokens.push_back(in.string());
  return tokens;
}

// What comes behind the number that tells what the bytes are.
Result<Reader> readBehind(uint32_t magic, std::string_view bytes, const char* what) {
  Reader in(bytes);
  if (in.u32() == magic) return in;
  return error(Code::invalidArgument, "{} bytes are not {} of this version", bytes.size(), what);
}

std::string_view asText(const DeviceUuid& uuid) {
  return {reinterpret_cast<const char*>(uuid.bytes.data()), uuid.bytes.size()};
}

bool isToken(const std::string& text) {
  return text.size() == kTokenSize;
}

Status check(const Key& key, uint8_t access, uint8_t processVm) {
  bool sane = access <= static_cast<uint8_t>(Access::readWrite) && processVm <= 1 &&
              key.device.index >= 0 && key.size > 0 && !key.exchange.empty() &&
              key.exchange.size() <= kLongestName && key.shareTokens.size() <= Share::kMostPieces &&
              std::all_of(key.shareTokens.begin(), key.shareTokens.end(), isToken) &&
              (key.pageToken.empty() || isToken(key.pageToken)) && key.pid > 0 &&
              fits(key.address, key.size, UINT64_MAX) && fits(key.shareOffset, key.size, INT64_MAX);
  if (!sane) return error(Code::invalidArgument, "an ipc key holds values that make no sense");
  return Status();
}

}  // namespace

std::string encode(const Key& key) {
  Writer out;
  out.u32(kKeyMagic).u8(static_cast<uint8_t>(key.access)).string(deviceKindName(key.device.kind));
  out.u32(static_cast<uint32_t>(key.device.index)).raw(asText(key.uuid)).u64(key.size);
  out.string(key.exchange).raw(key.process);
  out.u32(static_cast<uint32_t>(key.shareTokens.size()));
  for (const std::string& token : key.shareTokens) out.string(token);
  out.string(key.shareHandle).u64(key.shareOffset).string(key.notShared);
  out.u8(key.processVm ? 1 : 0).u32(static_cast<uint32_t>(key.pid)).u64(key.address);
  out.u64(key.nonceAddress).raw(key.nonce);
  out.string(key.pageToken).u64(key.region);
  return out.take();
}

Result<Key> decodeKey(std::string_view bytes) {
  HMC_ASSIGN(Reader in, readBehind(kKeyMagic, bytes, "an ipc key"));
  Key key;
  uint8_t access = in.u8();
  std::string kind = in.string();
  key.device.index = static_cast<int>(in.u32());
  const std::string_view uuid = in.raw(key.uuid.bytes.size());
  std::copy_n(uuid.begin(), uuid.size(), key.uuid.bytes.begin());
  key.size = in.u64();
  key.exchange = in.string();
  key.process = in.raw(kNonceSize);
  key.shareTokens = readTokens(in);
  key.shareHandle = in.string();
  key.shareOffset = in.u64();
  key.notShared = in.string();
  uint8_t processVm = in.u8();
  key.pid = static_cast<pid_t>(in.u32());
  key.address = in.u64();
  key.nonceAddress = in.u64();
  key.nonce = in.raw(kNonceSize);
  key.pageToken = in.string();
  key.region = in.u64();
  HMC_TRY(in.finish("an ipc key"));
  HMC_ASSIGN(key.device.kind, kindOf(kind));
  HMC_TRY(check(key, access, processVm));
  key.access = static_cast<Access>(access);
  key.processVm = processVm == 1;
  return key;
}

std::string encode(const Address& address) {
  Writer out;
  out.u32(kAddressMagic).string(address.exchange).raw(address.process).raw(address.link);
  return out.take();
}

Result<Address> decodeAddress(std::string_view bytes) {
  HMC_ASSIGN(Reader in, readBehind(kAddressMagic, bytes, "an ipc address"));
  Address address;
  address.exchange = in.string();
  address.process = in.raw(kNonceSize);
  address.link = in.raw(kNonceSize);
  HMC_TRY(in.finish("an ipc address"));
  if (address.exchange.empty() || address.exchange.size() > kLongestName) {
    return error(Code::invalidArgument, "an ipc address names no descriptor exchange");
  }
  return address;
}

std::string processNonce() {
  static const std::string kRandom = randomBytes(kNonceSize - sizeof(pid_t));
  // With the pid in it, a child made by fork() does not take itself for its parent.
  pid_t pid = getpid();
  return kRandom + std::string(reinterpret_cast<const char*>(&pid), sizeof(pid));
}

}  // namespace hmc::ipc
