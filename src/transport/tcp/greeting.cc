#include "transport/tcp/greeting.h"

#include "base/codec.h"

namespace hmc::tcp {

namespace {
constexpr uint32_t kGreetingMagic = 0x32434d48;  // "HMC2"
}  // namespace

std::string Greeting::pack(const std::string& credentials) const {
  std::string bytes = Writer().u32(kGreetingMagic).u32(role).u32(stream).raw(token).take();
  return bytes + proof(credentials, bytes);
}

Greeting Greeting::unpack(const char* bytes) {
  Reader in({bytes, kProven});
  if (in.u32() != kGreetingMagic) return {};
  Greeting greeting;
  greeting.role = in.u32();
  greeting.stream = in.u32();
  greeting.token = in.raw(kTokenSize);
  return greeting;
}

bool Greeting::isProven(const char* bytes, const std::string& credentials) {
  return sameProof(proof(credentials, {bytes, kProven}), {bytes + kProven, kProofSize});
}

}  // namespace hmc::tcp
