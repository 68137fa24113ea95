#pragma once

#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/codec.h"
#include "control/frame.h"
#include "transport/tcp/address.h"

namespace hmc::test {

// Gives the frame in which that byte lies the checksums of what it has by now.
inline void sealAgain(std::span<char> bytes, size_t changed) {
  using namespace control;
  const std::string_view text(bytes.data(), bytes.size());
  for (size_t at = 0; at + kFrameHeader <= text.size();) {
    Reader header(text.substr(at, kFrameHeader));
    const uint32_t length = header.u32();
    const auto type = static_cast<FrameType>(header.u8());
    const uint8_t detail = header.u8();
    const size_t payload = at + kFrameHeader;
    if (payload + length > changed) {
      const auto sealed = frameHeader(type, detail, header.u16(), text.substr(payload, length));
      std::memcpy(bytes.data() + at, sealed.data(), sealed.size());
      return;
    }
    at = payload + length;
  }
}

// For who stands between two Nodes: where these bytes of their control connection tell the port of
// a tcp link, tells `instead(port)` in its place. An answer is one small frame, which arrives
// whole.
template <class Instead>
void divertData(std::span<char> bytes, Instead instead) {
  // In the encoding of an address, in front of the port.
  const std::string magic = tcp::Address{}.encode().substr(0, sizeof(uint32_t));
  const size_t at = std::string_view(bytes.data(), bytes.size()).find(magic);
  uint16_t port = 0;
  if (at == std::string_view::npos || at + magic.size() + sizeof(port) > bytes.size()) return;
  char* const where = bytes.data() + at + magic.size();
  std::memcpy(&port, where, sizeof(port));
  if (port == 0) return;
  port = instead(port);
  std::memcpy(where, &port, sizeof(port));
  sealAgain(bytes, at);
}

}  // namespace hmc::test
