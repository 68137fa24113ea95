#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/fd.h"
#include "base/tls_session.h"

namespace hmc::tcp {

// A socket of a stream, plain or with TLS. What is sent and received is as with the socket's own
// calls: -1 with errno, EAGAIN when it is not the time, EFAULT where memory of the user's cannot be
// read or written. The stream goes on after that. For one thread at a time.
//
// With TLS, 0 is an end that the peer has signed (close_notify). A socket that merely ended or was
// reset, which anybody on the way can bring about, is ECONNABORTED and says nothing about the peer.
class Connection {
 public:
  Connection() = default;
  explicit Connection(Fd fd, std::unique_ptr<TlsSession> tls = nullptr)
      : fd_(std::move(fd)), tls_(std::move(tls)) {
    if (tls_) tls_->guardMemory();
  }
  Connection(Connection&&) noexcept = default;
  Connection& operator=(Connection&& other) noexcept {
    reset();
    fd_ = std::move(other.fd_);
    tls_ = std::move(other.tls_);
    decrypted_ = std::move(other.decrypted_);
    return *this;
  }

  int get() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }
  // From now on nothing leaves it: closing discards what was not sent and resets the connection.
  void abandon();
  // With TLS it says goodbye first.
  void reset() {
    tls_.reset();
    decrypted_.reset();
    fd_.reset();
  }

  // The last part of the message is ours; those before it may be the user's.
  ssize_t receive(msghdr& message) {
    return tls_ ? receiveTls(message) : recvmsg(fd_.get(), &message, MSG_DONTWAIT);
  }
  ssize_t receive(char* into, size_t size);
  // The most that a receive() can copy without a system call of its own: with TLS what is decrypted
  // by now. Without, each receive() is one system call.
  size_t ready() { return tls_ ? tls_->ready() : SIZE_MAX; }
  // Whether a receive() of 0 can only come from the peer.
  bool endIsSigned() const { return tls_ != nullptr; }
  // `more` as MSG_MORE.
  ssize_t send(msghdr& message, bool more) {
    return tls_ ? sendTls(message)
                : sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0));
  }
  ssize_t send(const char* bytes, size_t size);
  // Bytes that the peer may have seen, although send() has not counted them; they count from now
  // on.
  size_t takeUncounted() { return tls_ ? tls_->takeUncounted() : 0; }
  // We send no more. The peer learns it.
  void finishSending();

  // Whether something was received that receive() has not answered yet: the socket will not tell.
  bool buffered() const { return holdsBytes() || (tls_ && tls_->buffered()); }
  // The same, and the next receive() answers it for sure.
  bool holdsBytes() const { return decrypted_ && decrypted_->used < decrypted_->size; }
  // Until the peer has answered there is nothing to send, although the socket takes bytes.
  bool awaitsPeer() const { return tls_ && tls_->awaitsPeer(); }
  // What TLS has to say about a failure; ok where it has nothing.
  Status problem() const { return tls_ ? tls_->problem() : Status(); }

 private:
  ssize_t receiveTls(msghdr& message);
  ssize_t sendTls(msghdr& message);

  // A record, on its way to where it belongs.
  struct Decrypted {
    size_t used = 0;
    size_t size = 0;
    char bytes[TlsSession::kRecord];
  };

  Fd fd_;
  std::unique_ptr<TlsSession> tls_;
  std::unique_ptr<Decrypted> decrypted_;
};

}  // namespace hmc::tcp
