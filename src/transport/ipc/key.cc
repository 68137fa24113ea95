#include "transport/ipc/key.h"

#include <algorithm>

#include "base/codec.h"
#include "base/error.h"

namespace hmc::ipc {

namespace {

// The last byte is the version: both sides must have been built with the same layout.
constexpr uint32_t kKeyMagic = 0x4b435004;
constexpr uint32_t kDescriptionMagic = 0x44435001;
constexpr uint32_t kAddressMagic = 0x41435002;
constexpr size_t kLongestName = 100;  // a unix socket's name has less room than this

Result<DeviceKind> kindOf(const std::string& name) {
  if (const DeviceKind* kind = findDeviceKind(name)) return *kind;
  return error(Code::invalidArgument, "a peer describes memory of an unknown kind of device");
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

Status check(const Description& what, uint8_t access, uint8_t processVm, uint8_t page) {
  bool sane = access <= static_cast<uint8_t>(Access::readWrite) && processVm <= 1 && page <= 1 &&
              what.device.index >= 0 && what.size > 0 && what.shareFds <= Share::kMostPieces &&
              fits(what.address, what.size, UINT64_MAX) &&
              fits(what.shareOffset, what.size, INT64_MAX);
  if (!sane)
    return error(Code::invalidArgument, "a peer describes its memory with impossible values");
  return Status();
}

}  // namespace

std::string encode(const Key& key) {
  return Writer().u32(kKeyMagic).raw(key.token).take();
}

Result<Key> decodeKey(std::string_view bytes) {
  HMC_ASSIGN(Reader in, readBehind(kKeyMagic, bytes, "an ipc key"));
  Key key{std::string(in.raw(kTokenSize))};
  HMC_TRY(in.finish("an ipc key"));
  return key;
}

std::string encode(const Description& what) {
  Writer out;
  out.u32(kDescriptionMagic).u8(static_cast<uint8_t>(what.access));
  out.string(deviceKindName(what.device.kind)).u32(static_cast<uint32_t>(what.device.index));
  out.raw(asText(what.uuid)).u64(what.size);
  out.u32(what.shareFds).string(what.shareHandle).u64(what.shareOffset).string(what.notShared);
  out.u8(what.processVm ? 1 : 0).u64(what.address).u64(what.nonceAddress).raw(what.nonce);
  out.u8(what.page ? 1 : 0).u64(what.region);
  return out.take();
}

Result<Description> decodeDescription(std::string_view bytes) {
  HMC_ASSIGN(Reader in, readBehind(kDescriptionMagic, bytes, "a description of ipc memory"));
  Description what;
  const uint8_t access = in.u8();
  const std::string kind = in.string();
  what.device.index = static_cast<int>(in.u32());
  const std::string_view uuid = in.raw(what.uuid.bytes.size());
  std::copy_n(uuid.begin(), uuid.size(), what.uuid.bytes.begin());
  what.size = in.u64();
  what.shareFds = in.u32();
  what.shareHandle = in.string();
  what.shareOffset = in.u64();
  what.notShared = in.string();
  const uint8_t processVm = in.u8();
  what.address = in.u64();
  what.nonceAddress = in.u64();
  what.nonce = in.raw(kNonceSize);
  const uint8_t page = in.u8();
  what.region = in.u64();
  HMC_TRY(in.finish("a description of ipc memory"));
  HMC_ASSIGN(what.device.kind, kindOf(kind));
  HMC_TRY(check(what, access, processVm, page));
  what.access = static_cast<Access>(access);
  what.processVm = processVm == 1;
  what.page = page == 1;
  return what;
}

std::string encode(const Address& address) {
  Writer out;
  out.u32(kAddressMagic).string(address.exchange).raw(address.link);
  return out.take();
}

Result<Address> decodeAddress(std::string_view bytes) {
  HMC_ASSIGN(Reader in, readBehind(kAddressMagic, bytes, "an ipc address"));
  Address address;
  address.exchange = in.string();
  address.link = in.raw(kTokenSize);
  HMC_TRY(in.finish("an ipc address"));
  if (address.exchange.empty() || address.exchange.size() > kLongestName) {
    return error(Code::invalidArgument, "an ipc address names no descriptor exchange");
  }
  return address;
}

}  // namespace hmc::ipc
