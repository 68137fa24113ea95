#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "control/byte_stream.h"
#include "control/frame.h"
#include "control/handshake.h"
#include "control/socket.h"
#include "test_peer.h"

namespace hmc::control::test {

// A peer that speaks frames by hand, also wrong ones.
class RawPeer {
 public:
  explicit RawPeer(const std::string& address, const std::string& secret = "")
      : handshake_(secret, address) {
    auto fd = dial(*parseAddress(address), kPatience);
    if (fd.ok()) stream_ = socketStream(*std::move(fd));
  }

  Status say(std::string_view bytes) { return writeAll(*stream_, bytes, "raw", kPatience); }
  Status say(FrameType type, std::string_view payload = {}) {
    return say(std::string_view(frameBytes(type, payload)));
  }
  struct Heard {
    FrameType type{};  // 0 at the end of the stream
    std::string payload;
  };
  Heard hear() {
    std::string header(kFrameHeader, '\0');
    if (!readAll(*stream_, header.data(), header.size(), "raw", kPatience).ok()) return {};
    FrameReader reader(kLargestFrame);
    reader.feed(header);
    for (;;) {
      auto frame = reader.next();
      if (!frame.ok()) return {};
      if (*frame) return {(*frame)->type, std::string((*frame)->payload)};
      std::string rest(reader.missing(), '\0');
      if (!readAll(*stream_, rest.data(), rest.size(), "raw", kPatience).ok()) return {};
      reader.feed(rest);
    }
  }
  // The next frame that is no heartbeat.
  Heard hearWords() {
    for (;;) {
      Heard heard = hear();
      if (heard.type != FrameType::ping && heard.type != FrameType::pong) return heard;
    }
  }
  // All bytes until the other side closes the connection.
  std::string everything() {
    std::string bytes;
    char byte = 0;
    while (readAll(*stream_, &byte, 1, "raw", kPatience).ok()) bytes.push_back(byte);
    return bytes;
  }
  // True when the other side closes the connection.
  bool hangsUp() {
    for (;;) {
      Heard heard = hear();
      if (heard.type == FrameType{}) return true;
    }
  }

  // HELLO and CHALLENGE; false when that failed.
  bool greet() {
    say(FrameType::hello, handshake_.hello());
    Heard challenge = hear();
    return challenge.type == FrameType::challenge &&
           handshake_.takeChallenge(challenge.payload).ok();
  }
  Heard introduce(const std::string& name, const std::string& hostId = "",
                  std::string id = randomBytes(kIdSize), bool again = false) {
    Ident ident{std::move(id), again, name, "raw attributes", hostId};
    say(FrameType::ident, handshake_.ident(ident));
    return hear();
  }
  bool join(const std::string& name) {
    return greet() && introduce(name).type == FrameType::welcome;
  }
  void hangUp() { stream_.reset(); }

 private:
  DiallerHandshake handshake_;
  std::unique_ptr<ByteStream> stream_;
};

}  // namespace hmc::control::test
