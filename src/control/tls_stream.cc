#include "control/tls_stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <mutex>

#include "base/environment.h"
#include "base/error.h"

namespace hmc::control {

namespace {

class TlsStream final : public ByteStream {
 public:
  TlsStream(Fd socket, std::shared_ptr<TlsContext> context, std::unique_ptr<TlsSession> session)
      : socket_(std::move(socket)), context_(std::move(context)), session_(std::move(session)) {}

  int fd() const override { return socket_.get(); }

  Moved read(char* into, size_t size) override {
    std::lock_guard lock(mutex_);
    return outcome(session_->readRecord(into, size));
  }
  Moved write(std::span<const iovec> parts) override {
    std::lock_guard lock(mutex_);
    return outcome(session_->write(parts));
  }
  void finishWriting() override {
    std::lock_guard lock(mutex_);
    session_->sayGoodbye();
    shutdown(socket_.get(), SHUT_WR);
  }

  Result<short> comeUp() override {
    std::lock_guard lock(mutex_);
    switch (session_->handshake()) {
      case TlsSession::Step::done:
        return short{0};
      case TlsSession::Step::wantsRead:
        return short{POLLIN};
      case TlsSession::Step::wantsWrite:
        return short{POLLOUT};
      case TlsSession::Step::failed:
        break;
    }
    if (!session_->peerIsPlain()) return session_->problem();
    return error(Code::unsupported,
                 "it does not encrypt, and this side demands TLS: set {}=required there too, or "
                 "off here",
                 variable::kTls.name);
  }
  Status problem() const override {
    std::lock_guard lock(mutex_);
    return session_->problem();
  }
  std::string binding() const override {
    std::lock_guard lock(mutex_);
    return session_->exported("EXPORTER-hmc-control");
  }
  bool buffered() const override {
    std::lock_guard lock(mutex_);
    return session_->buffered();
  }

 private:
  static Moved outcome(const TlsMoved& moved) { return {moved.bytes, moved.ended, moved.errnum}; }

  const Fd socket_;
  const std::shared_ptr<TlsContext> context_;
  mutable std::mutex mutex_;  // guards the session: OpenSSL cannot read and write at the same time
  const std::unique_ptr<TlsSession> session_;
};

std::unique_ptr<ByteStream> streamOf(Fd socket, std::shared_ptr<TlsContext> tls,
                                     std::unique_ptr<TlsSession> session) {
  return std::make_unique<TlsStream>(std::move(socket), std::move(tls), std::move(session));
}

}  // namespace

Result<std::unique_ptr<ByteStream>> diallingTlsStream(Fd socket, std::shared_ptr<TlsContext> tls) {
  prepareSocket(socket.get());
  HMC_ASSIGN(auto session, tls->dial(socket.get()));
  return streamOf(std::move(socket), std::move(tls), std::move(session));
}

Result<std::unique_ptr<ByteStream>> acceptingTlsStream(Fd socket, std::shared_ptr<TlsContext> tls) {
  prepareSocket(socket.get());
  HMC_ASSIGN(auto session, tls->accept(socket.get()));
  return streamOf(std::move(socket), std::move(tls), std::move(session));
}

Status diallerIsPlain() {
  return error(Code::permissionDenied,
               "the peer demands TLS and the dialler does not encrypt: set {}=required here, with "
               "the peer's secret or a certificate of its CA",
               variable::kTls.name);
}

Status diallerUsesTls() {
  return error(Code::permissionDenied,
               "the dialler demands TLS and the peer does not encrypt: set {}=required there, or "
               "off here",
               variable::kTls.name);
}

}  // namespace hmc::control
