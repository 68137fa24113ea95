#include "transport/tcp/connection.h"

#include <cerrno>

#include "transport/tcp/socket.h"

namespace hmc::tcp {

namespace {

ssize_t failed(int errnum) {
  errno = errnum;
  return -1;
}

std::span<const iovec> partsOf(const msghdr& message) {
  return {message.msg_iov, message.msg_iovlen};
}

msghdr messageOf(iovec& part) {
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return message;
}

}  // namespace

ssize_t Connection::receiveTls(msghdr& message) {
  const TlsMoved moved = tls_->read(partsOf(message));
  if (moved.ended) return 0;
  if (moved.errnum != 0) return failed(ECONNABORTED);
  return moved.bytes > 0 ? static_cast<ssize_t>(moved.bytes) : failed(EAGAIN);
}

// A socket that takes no more may still have the peer's goodbye: whoever receives meets its end.
ssize_t Connection::sendTls(msghdr& message) {
  const TlsMoved moved = tls_->write(partsOf(message));
  if (moved.bytes > 0) return static_cast<ssize_t>(moved.bytes);
  return failed(tls_->problem().ok() ? EAGAIN : ECONNABORTED);
}

ssize_t Connection::receive(char* into, size_t size) {
  if (!tls_) return recv(fd_.get(), into, size, MSG_DONTWAIT);
  iovec part{into, size};
  msghdr message = messageOf(part);
  return receiveTls(message);
}

ssize_t Connection::send(const char* bytes, size_t size) {
  if (!tls_) return ::send(fd_.get(), bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  iovec part{const_cast<char*>(bytes), size};
  msghdr message = messageOf(part);
  return sendTls(message);
}

void Connection::abandon() {
  if (tls_) tls_->silence();
  abortOnClose(fd_.get());
}

void Connection::finishSending() {
  if (tls_) tls_->sayGoodbye();
  shutdown(fd_.get(), SHUT_WR);
}

}  // namespace hmc::tcp
