#pragma once

#include <memory>

#include "base/fd.h"
#include "base/tls_context.h"
#include "control/byte_stream.h"

namespace hmc::control {

// A connected socket whose peer must speak TLS. One that does not lets comeUp() fail with
// `unsupported`, and its bytes are still in the socket.
Result<std::unique_ptr<ByteStream>> diallingTlsStream(Fd socket, std::shared_ptr<TlsContext> tls);
Result<std::unique_ptr<ByteStream>> acceptingTlsStream(Fd socket, std::shared_ptr<TlsContext> tls);

// Whether these first bytes of a dialler begin a TLS handshake. No HELLO has them: it is shorter.
inline bool beginsTls(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x16 && bytes[1] == 0x03;
}

// Said to a dialler where one side encrypts and the other does not.
Status diallerIsPlain();
Status diallerUsesTls();

}  // namespace hmc::control
