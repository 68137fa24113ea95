#include <algorithm>
#include <array>
#include <memory>

#include "base/codec.h"
#include "base/crc32c.h"
#include "control/frame.h"
#include "control/handshake.h"
#include "control/socket.h"
#include "fuzz/input.h"

// What a stranger may say on a control connection: frames in pieces of any size, and in them the
// words of either side of a handshake. The first byte is the size of the pieces.

namespace {

using namespace hmc::control;
using hmc::test::check;

void takeWelcome(std::string_view payload) {
  const auto welcome = decodeWelcome(payload);
  if (!welcome.ok()) return;
  // Text that is not UTF-8 was made so.
  const std::string written = encodeWelcome(*welcome);
  const auto again = decodeWelcome(written);
  check(again.ok() && encodeWelcome(*again) == written);
}

// Both sides of the handshake hear the frames that are meant for them.
class Handshakes {
 public:
  void hear(const Frame& frame) {
    switch (frame.type) {
      case FrameType::hello:
        if (acceptor_->takeHello(frame.payload).ok()) check(acceptor_->lease().count() > 0);
        break;
      case FrameType::challenge:
        if (!dialler_->takeChallenge(frame.payload).ok()) break;
        (void)dialler_->ident({std::string(kIdSize, 'd'), false, "name", "attributes", "host"});
        check(!dialler_->credentials().empty());
        break;
      case FrameType::ident:
        if (acceptor_->takeIdent(frame.payload).ok()) check(!acceptor_->credentials().empty());
        break;
      case FrameType::welcome:
        takeWelcome(frame.payload);
        break;
      case FrameType::refused:
      case FrameType::bye:
        check(!decodeStatus(frame.payload).ok());
        break;
      default:
        break;
    }
  }

 private:
  const std::unique_ptr<AcceptorHandshake> acceptor_ =
      std::make_unique<AcceptorHandshake>("", std::string(kIdSize, 'a'));
  const std::unique_ptr<DiallerHandshake> dialler_ =
      std::make_unique<DiallerHandshake>("", "tcp://127.0.0.1:1");
};

// The input has frames without checksums, or nobody would find a frame that passes.
std::string sealed(std::string_view rest) {
  std::string frames;
  while (rest.size() >= 8) {
    hmc::Reader header(rest.substr(0, 8));
    const uint32_t length = header.u32();
    const auto type = static_cast<FrameType>(header.u8());
    const uint8_t detail = header.u8();
    const std::string_view payload = rest.substr(8, length);
    const auto bytes = sealedHeader(type, detail, header.u16(), length,
                                    hmc::crc32c(0, payload.data(), payload.size()));
    frames.append(bytes.data(), bytes.size()).append(payload);
    rest.remove_prefix(8 + payload.size());
  }
  return frames.append(rest);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hmc::test::Input input(data, size);
  const size_t piece = size_t{1} + input.number<uint8_t>();
  (void)parseAddress(std::string(input.rest()));
  FrameReader reader(kLargestHandshake);
  Handshakes handshakes;
  const std::string frames = sealed(input.rest());
  std::string_view rest = frames;
  while (!rest.empty()) {
    reader.feed(rest.substr(0, piece));
    rest.remove_prefix(std::min(piece, rest.size()));
    for (;;) {
      const auto frame = reader.next();
      if (!frame.ok()) return 0;
      if (!frame->has_value()) break;
      check((*frame)->payload.size() <= size);
      handshakes.hear(**frame);
    }
    check(reader.empty() || reader.missing() > 0);
  }
  return 0;
}
