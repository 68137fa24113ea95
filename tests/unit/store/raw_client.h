#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/codec.h"
#include "base/random.h"
#include "control/byte_stream.h"
#include "control/dialler.h"
#include "control/frame.h"
#include "control/security.h"
#include "control/socket.h"
#include "fakes/must.h"
#include "store/wire.h"

namespace hmc::store::test {

inline constexpr std::chrono::seconds kPatience{60};

// A connection that a server takes for a client's: after the handshake it says what it is told to.
inline std::unique_ptr<control::ByteStream> dialRaw(const std::string& address) {
  using hmc::test::must;
  const control::Address parsed = must(control::parseAddress(address));
  control::ControlOptions options;
  EXPECT_TRUE(control::addDefaults(options, {}).ok());
  control::Dialler dialler = must(control::Dialler::dial(parsed, options, kPatience));
  const control::Ident ident{randomBytes(control::kIdSize), false, "raw", std::string(kProtocol),
                             ""};
  must(dialler.introduce(ident, kPatience));
  return dialler.takeStream();
}

inline std::string callFrame(uint64_t number, uint16_t method, std::string_view request) {
  return control::frameBytes(control::FrameType::call,
                             Writer().u64(number).u16(method).raw(request).take());
}

}  // namespace hmc::store::test
