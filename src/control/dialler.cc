#include "control/dialler.h"

#include <algorithm>

#include "base/error.h"
#include "control/socket.h"
#include "control/tls_stream.h"

namespace hmc::control {

Result<Dialler> Dialler::dial(const Address& address, const ControlOptions& options,
                              Deadline deadline) {
  HMC_ASSIGN(Fd socket, hmc::control::dial(address, deadline));
  SocketEnds ends = endsOf(socket.get());
  std::string who = address.toString();
  std::string where = address.isUnix ? who : fmt::format("{}:{}", ends.remoteHost, ends.remotePort);
  std::unique_ptr<ByteStream> stream;
  if (options.tls) {
    HMC_ASSIGN(stream, diallingTlsStream(std::move(socket), options.tls));
  } else {
    stream = socketStream(std::move(socket));
  }
  HMC_TRY(waitUp(*stream, who, deadline));
  const Secret secret = secretFor(options, ends);
  Dialler dialler(std::move(who), std::move(where), std::move(ends), std::move(stream), secret,
                  options.lease);
  HMC_TRY(dialler.say(FrameType::hello, dialler.handshake_.hello(), deadline));
  HMC_ASSIGN(auto answer, dialler.hear(deadline));
  if (answer.type != FrameType::challenge) return dialler.stranger();
  HMC_ASSIGN(dialler.peerId_, dialler.handshake_.takeChallenge(answer.payload));
  return dialler;
}

Dialler::Dialler(std::string who, std::string where, SocketEnds ends,
                 std::unique_ptr<ByteStream> stream, const Secret& secret,
                 std::chrono::milliseconds lease)
    : who_(std::move(who)),
      where_(std::move(where)),
      ends_(std::move(ends)),
      stream_(std::move(stream)),
      handshake_(secret, who_, lease) {
  handshake_.bind(stream_->binding());
}

Result<std::optional<Welcome>> Dialler::introduce(const Ident& ident, Deadline deadline) {
  HMC_TRY(say(FrameType::ident, handshake_.ident(ident), deadline));
  HMC_ASSIGN(auto answer, hear(deadline));
  if (answer.type == FrameType::yield) return std::optional<Welcome>();
  if (answer.type != FrameType::welcome) return stranger();
  HMC_ASSIGN(Welcome welcome, decodeWelcome(answer.payload));
  return std::optional<Welcome>(std::move(welcome));
}

Status Dialler::say(FrameType type, std::string_view payload, Deadline deadline) {
  return writeAll(*stream_, frameBytes(type, payload), who_, deadline);
}

// Reads exactly one frame, so that nothing that follows it is lost.
Result<Dialler::Answer> Dialler::hear(Deadline deadline) {
  FrameReader reader(kLargestHandshake);
  std::string bytes(kFrameHeader, '\0');
  for (;;) {
    HMC_TRY(readAll(*stream_, bytes.data(), bytes.size(), who_, deadline));
    reader.feed(bytes);
    auto frame = reader.next();
    if (!frame.ok()) return frame.status().within(who_);
    if (*frame && (*frame)->type == FrameType::refused) {
      return decodeStatus((*frame)->payload).within(who_);
    }
    if (*frame) return Answer{(*frame)->type, std::string((*frame)->payload)};
    bytes.resize(std::min(reader.missing(), size_t{4096}));
  }
}

Status Dialler::stranger() const {
  return error(Code::failed, "{} does not speak this protocol", who_);
}

}  // namespace hmc::control
