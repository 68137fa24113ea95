#include "transport/tcp/connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/guarded_copy.h"
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

// What was received counts first; the next call meets the end, or the memory, again.
ssize_t Connection::receiveTls(msghdr& message) {
  if (!decrypted_) decrypted_ = std::make_unique<Decrypted>();
  Decrypted& record = *decrypted_;
  const std::span<const iovec> parts = partsOf(message);
  ssize_t all = 0;
  for (const iovec& part : parts) {
    for (size_t filled = 0; filled < part.iov_len;) {
      if (record.used == record.size) {
        const TlsMoved moved = tls_->readRecord(record.bytes, sizeof(record.bytes));
        record.used = 0;
        record.size = moved.bytes;
        if (moved.bytes == 0 && all > 0) return all;
        if (moved.ended) return 0;
        if (moved.bytes == 0) return failed(moved.errnum != 0 ? ECONNABORTED : EAGAIN);
      }
      const size_t step = std::min(part.iov_len - filled, record.size - record.used);
      char* const to = static_cast<char*>(part.iov_base) + filled;
      if (&part == &parts.back()) {
        std::memcpy(to, record.bytes + record.used, step);
      } else if (!writeGuarded(to, record.bytes + record.used, step)) {
        return all > 0 ? all : failed(EFAULT);
      }
      record.used += step;
      filled += step;
      all += static_cast<ssize_t>(step);
    }
  }
  return all;
}

// A socket that takes no more may still have the peer's goodbye: whoever receives meets its end.
ssize_t Connection::sendTls(msghdr& message) {
  const TlsMoved moved = tls_->write(partsOf(message));
  if (moved.bytes > 0) return static_cast<ssize_t>(moved.bytes);
  if (moved.errnum == EFAULT) return failed(EFAULT);
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
