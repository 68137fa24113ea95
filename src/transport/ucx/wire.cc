#include "transport/ucx/wire.h"

#include "base/codec.h"
#include "base/error.h"

namespace hmc::ucx {

namespace {

constexpr uint32_t kAddressMagic = 0x31584355;  // "UCX1"
constexpr uint32_t kKeyMagic = 0x324b4355;      // "UCK2"
constexpr size_t kChecksumSize = 8;

// FNV-1a: against damage, not against malice.
uint64_t checksum(std::string_view bytes) {
  uint64_t sum = 0xcbf29ce484222325ull;
  for (const char byte : bytes) sum = (sum ^ static_cast<unsigned char>(byte)) * 0x100000001b3ull;
  return sum;
}

std::string sealed(const std::string& bytes) {
  const uint64_t sum = checksum(bytes);
  return Writer().raw(bytes).u64(sum).take();
}

// The fields that were sealed, after the check of magic and checksum.
Result<Reader> opened(std::string_view bytes, uint32_t magic, const char* what) {
  const size_t size = bytes.size() < kChecksumSize ? 0 : bytes.size() - kChecksumSize;
  if (Reader(bytes).u32() != magic ||
      Reader(bytes.substr(size)).u64() != checksum(bytes.substr(0, size))) {
    return error(Code::invalidArgument, "these {} bytes are not {}", bytes.size(), what);
  }
  return Reader(bytes.substr(sizeof(magic), size - sizeof(magic)));
}

}  // namespace

std::string ServiceMessage::encode() const {
  return Writer().u8(static_cast<uint8_t>(kind)).u64(number).u64(link).take();
}

Result<ServiceMessage> ServiceMessage::decode(std::string_view bytes) {
  constexpr const char* kWhat = "a message of a ucx service";
  Reader reader(bytes);
  const ServiceMessage message{static_cast<ServiceKind>(reader.u8()), reader.u64(), reader.u64()};
  HMC_TRY(reader.finish(kWhat));
  if (message.kind < ServiceKind::hello || message.kind > ServiceKind::expected) {
    return error(Code::invalidArgument, "{} of kind {}", kWhat, static_cast<int>(message.kind));
  }
  return message;
}

std::string Address::encode() const {
  return sealed(
      Writer().u32(kAddressMagic).u64(link).string(target).string(control).string(version).take());
}

Result<Address> Address::decode(std::string_view bytes) {
  constexpr const char* kWhat = "a ucx link's address";
  HMC_ASSIGN(Reader reader, opened(bytes, kAddressMagic, kWhat));
  Address address{reader.u64(), reader.string(), reader.string(), reader.string()};
  HMC_TRY(reader.finish(kWhat));
  if (address.target.empty() || address.control.empty()) {
    return error(Code::invalidArgument, "{} names no worker", kWhat);
  }
  return address;
}

std::string Key::encode() const {
  return sealed(Writer()
                    .u32(kKeyMagic)
                    .u64(region)
                    .u64(address)
                    .u64(size)
                    .u8(access == Access::readWrite ? 1 : 0)
                    .string(hardware)
                    .string(hindrance)
                    .take());
}

Result<Key> Key::decode(std::string_view bytes) {
  constexpr const char* kWhat = "a ucx memory key";
  HMC_ASSIGN(Reader reader, opened(bytes, kKeyMagic, kWhat));
  Key key{reader.u64(), reader.u64(), reader.u64()};
  key.access = reader.u8() == 1 ? Access::readWrite : Access::read;
  key.hardware = reader.string();
  key.hindrance = reader.string();
  HMC_TRY(reader.finish(kWhat));
  if (key.size == 0 || key.size > UINT64_MAX - key.address) {
    return error(Code::invalidArgument, "{} describes no memory", kWhat);
  }
  return key;
}

}  // namespace hmc::ucx
