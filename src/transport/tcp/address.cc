#include "transport/tcp/address.h"

#include "base/codec.h"
#include "base/error.h"

namespace hmc::tcp {

namespace {
constexpr uint32_t kAddressMagic = 0x34504354;   // "TCP4"
constexpr uint32_t kKeyMagic = 0x4b504354;       // "TCPK"
constexpr uint32_t kGreetingMagic = 0x33434d48;  // "HMC3"
constexpr uint32_t kChecked = 1 << 8;            // beside the role
}  // namespace

std::string Address::encode() const {
  return Writer()
      .u32(kAddressMagic)
      .u16(port)
      .string(token)
      .string(exchange)
      .u8(checks ? 1 : 0)
      .take();
}

Result<Address> Address::decode(std::string_view bytes) {
  Reader reader(bytes);
  const uint32_t magic = reader.u32();
  Address address;
  address.port = reader.u16();
  address.token = reader.string();
  address.exchange = reader.string();
  const uint8_t checks = reader.u8();
  HMC_TRY(reader.finish("a tcp link's address"));
  address.checks = checks == 1;
  if (magic != kAddressMagic || checks > 1 ||
      (!address.dials() && address.token.size() != kTokenSize)) {
    return error(Code::invalidArgument, "these {} bytes are not a tcp link's address",
                 bytes.size());
  }
  return address;
}

std::string Key::encode() const {
  return Writer().u32(kKeyMagic).u64(region).u64(size).u8(writable ? 1 : 0).take();
}

Result<Key> Key::decode(std::string_view bytes) {
  Reader reader(bytes);
  const uint32_t magic = reader.u32();
  Key key;
  key.region = reader.u64();
  key.size = reader.u64();
  const uint8_t writable = reader.u8();
  HMC_TRY(reader.finish("a tcp memory key"));
  if (magic != kKeyMagic || writable > 1) {
    return error(Code::invalidArgument, "these {} bytes are not a tcp memory key", bytes.size());
  }
  key.writable = writable == 1;
  return key;
}

std::string Greeting::pack(const std::string& credentials) const {
  const uint32_t how = role | (checked ? kChecked : 0);
  std::string bytes = Writer().u32(kGreetingMagic).u32(how).u32(stream).raw(token).take();
  return bytes + proof(credentials, bytes);
}

Greeting Greeting::unpack(const char* bytes) {
  Reader in({bytes, kProven});
  if (in.u32() != kGreetingMagic) return {};
  Greeting greeting;
  const uint32_t how = in.u32();
  greeting.checked = (how & kChecked) != 0;
  greeting.role = how & ~kChecked;
  greeting.stream = in.u32();
  greeting.token = in.raw(kTokenSize);
  return greeting;
}

bool Greeting::isProven(const char* bytes, const std::string& credentials) {
  return sameProof(proof(credentials, {bytes, kProven}), {bytes + kProven, kProofSize});
}

std::string farewell(std::string_view greeting, const std::string& credentials) {
  return proof(credentials, "farewell" + std::string(greeting.substr(0, Greeting::kProven)));
}

}  // namespace hmc::tcp
