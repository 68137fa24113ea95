#pragma once

#include <sys/uio.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "hmc/deadline.h"
#include "hmc/result.h"

namespace hmc::control {

// What one non-blocking read or write did.
struct Moved {
  size_t bytes = 0;    // with no error and no end, 0 means: not now, wait for readiness
  bool ended = false;  // read only: the peer sends no more
  int errnum = 0;      // the connection broke
};

// An ordered, reliable, non-blocking byte stream to one peer. The one place that knows what lies
// under a control connection: a TCP or unix socket, plain or with TLS. One thread reads and one
// writes at a time.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  // To wait for readiness on, and for nothing else.
  virtual int fd() const = 0;
  virtual Moved read(char* into, size_t size) = 0;
  virtual Moved write(std::span<const iovec> parts) = 0;
  // We send no more; the peer reads what was written and then sees the end.
  virtual void finishWriting() = 0;

  // What a stream needs before its first byte: the events of poll(2) to call this again at, 0 when
  // it is up.
  virtual Result<short> comeUp() { return short{0}; }
  // Why it broke, where there is more to say than the number; else ok.
  virtual Status problem() const { return Status(); }
  // Bytes that belong to this stream alone and that both ends know; empty where there are none.
  virtual std::string binding() const { return {}; }
  // There is more to read although the socket has nothing: only after a read of less than 16 KiB.
  virtual bool buffered() const { return false; }
};

// Takes a connected socket and makes it non-blocking; sets TCP_NODELAY where it exists.
std::unique_ptr<ByteStream> socketStream(Fd socket);
// The same for sockets of other streams.
void prepareSocket(int socket);

// The numeric addresses of a connected socket's ends; "127.0.0.1" and port 0 for a unix socket.
struct SocketEnds {
  std::string localHost = "127.0.0.1";
  std::string remoteHost = "127.0.0.1";
  uint16_t remotePort = 0;
  bool isUnix = false;
};
SocketEnds endsOf(int socket);

// True when the descriptor got ready before the deadline. `events` as for poll(2).
bool waitReady(int fd, short events, Deadline deadline);

// comeUp() to its end.
Status waitUp(ByteStream& stream, const std::string& who, Deadline deadline);

// Blocking ends of a ByteStream, for a dialler's handshake in its own thread. `who` begins the
// sentence.
Status writeAll(ByteStream& stream, std::string_view bytes, const std::string& who,
                Deadline deadline);
Status readAll(ByteStream& stream, char* into, size_t size, const std::string& who,
               Deadline deadline);

}  // namespace hmc::control
