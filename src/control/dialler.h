#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/tls_context.h"
#include "control/byte_stream.h"
#include "control/control.h"
#include "control/frame.h"
#include "control/handshake.h"
#include "control/socket.h"
#include "hmc/deadline.h"

namespace hmc::control {

// The dialling side of the handshake, in the caller's own thread.
class Dialler {
 public:
  // Connects, encrypts where the options say so, and checks the acceptor's proof.
  static Result<Dialler> dial(const Address& address, const ControlOptions& options,
                              Deadline deadline);

  const std::string& peerId() const { return peerId_; }
  // The address that was dialled, and the same as the channel's sentences say it.
  const std::string& who() const { return who_; }
  const std::string& where() const { return where_; }
  const SocketEnds& ends() const { return ends_; }

  // Says who we are. Nothing when the acceptor points us to a channel that the two have already;
  // its refusal is an error.
  Result<std::optional<Welcome>> introduce(const Ident& ident, Deadline deadline);
  // After introduce(), as Channel::credentials().
  std::string credentials() const { return handshake_.credentials(); }
  bool hasSecret() const { return handshake_.hasSecret(); }
  std::chrono::milliseconds lease() const { return handshake_.lease(); }
  std::unique_ptr<ByteStream> takeStream() { return std::move(stream_); }

 private:
  struct Answer {
    FrameType type;
    std::string payload;
  };
  Dialler(std::string who, std::string where, SocketEnds ends, std::unique_ptr<ByteStream> stream,
          const Secret& secret, std::chrono::milliseconds lease);
  Status say(FrameType type, std::string_view payload, Deadline deadline);
  // The next frame, or the error that it carries.
  Result<Answer> hear(Deadline deadline);
  Status stranger() const;

  std::string who_;
  std::string where_;
  SocketEnds ends_;
  std::unique_ptr<ByteStream> stream_;
  DiallerHandshake handshake_;
  std::string peerId_;
};

}  // namespace hmc::control
