#include "base/tls_session.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/crypto_use.h"
#include "base/error.h"
#include "base/guarded_copy.h"

namespace hmc {

namespace {

// The first byte of a TLS connection, from either side: a handshake, or an alert as the answer.
constexpr unsigned char kHandshakeRecord = 0x16;
constexpr unsigned char kAlertRecord = 0x15;
constexpr size_t kExported = 32;

size_t sizeOf(std::span<const iovec> parts) {
  size_t size = 0;
  for (const iovec& part : parts) size += part.iov_len;
  return size;
}

// What lies `at` bytes into the parts, `most` bytes of it: those parts, or pieces of them.
constexpr size_t kMostParts = 64;
std::span<const iovec> partsAt(std::span<const iovec> parts, size_t at, size_t most,
                               iovec (&found)[kMostParts]) {
  size_t count = 0;
  for (const iovec& part : parts) {
    const size_t passed = std::min(at, part.iov_len);
    const size_t size = std::min(part.iov_len - passed, most);
    at -= passed;
    if (size == 0) continue;
    found[count++] = {static_cast<char*>(part.iov_base) + passed, size};
    most -= size;
    if (most == 0 || count == kMostParts) break;
  }
  return {found, count};
}

}  // namespace

TlsSession::TlsSession(SSL* ssl, int socket, Side side, TlsSecret secret, uint64_t recordsPerKey)
    : ssl_(ssl),
      socket_(socket),
      side_(side),
      secret_(std::move(secret)),
      recordsPerKey_(recordsPerKey) {
  SSL_set_app_data(ssl, this);
  BIO* bio = BIO_new(bioMethod());
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  side == Side::acceptor ? SSL_set_accept_state(ssl) : SSL_set_connect_state(ssl);
}

void TlsSession::Free::operator()(SSL* ssl) const {
  if (const CryptoUse use; use) SSL_free(ssl);
}

Status TlsSession::refusal() {
  return error(Code::cancelled, "this process is ending: nothing is encrypted any more");
}

TlsSession::~TlsSession() {
  sayGoodbye();
}

// OpenSSL's own BIO for sockets writes without MSG_NOSIGNAL, and one record at a time.
BIO_METHOD* TlsSession::bioMethod() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "hmc socket");
    BIO_meth_set_read(made, bioRead);
    BIO_meth_set_write(made, bioWrite);
    BIO_meth_set_ctrl(made, bioControl);
    return made;
  }();
  return method;
}

int TlsSession::bioRead(BIO* bio, char* into, int size) {
  auto& self = *static_cast<TlsSession*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  ssize_t got = self.look();
  if (self.peerIsPlain_) return -1;
  if (got > 0) got = self.receive(into, static_cast<size_t>(size), 0);
  if (got > 0) return static_cast<int>(got);
  // An end of the socket is our own affair: OpenSSL would answer it with an alert, and then there
  // could be no goodbye any more.
  if (got == 0) self.cutOff_ = true;
  if (got == 0 || errno == EAGAIN || errno == EWOULDBLOCK) {
    BIO_set_retry_read(bio);
  } else {
    self.errnum_ = errno;
  }
  return -1;
}

int TlsSession::bioWrite(BIO* bio, const char* bytes, int size) {
  auto& self = *static_cast<TlsSession*>(BIO_get_data(bio));
  self.out_.insert(self.out_.end(), bytes, bytes + size);
  return size;
}

long TlsSession::bioControl(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

bool TlsSession::flush() {
  bool taken = true;
  while (taken && sent_ < out_.size()) {
    const ssize_t count =
        send(socket_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    taken = count >= 0;
    if (taken) sent_ += static_cast<size_t>(count);
    if (!taken && errno != EAGAIN && errno != EWOULDBLOCK) errnum_ = errno;
  }
  for (; !sealed_.empty() && sealed_.front().end <= sent_; sealed_.pop_front())
    left_ += sealed_.front().bytes;
  if (!taken) return false;
  out_.clear();
  sent_ = 0;
  return true;
}

ssize_t TlsSession::receive(void* into, size_t size, int flags) const {
  ssize_t got = 0;
  do {
    got = recv(socket_, into, size, MSG_DONTWAIT | flags);
  } while (got < 0 && errno == EINTR);
  return got;
}

// Nothing is read before the first byte was looked at: a peer that does not encrypt is told so by
// our caller, and not after a timeout. Answers as recv() does.
ssize_t TlsSession::look() {
  unsigned char first = 0;
  if (looked_) return 1;
  const ssize_t got = receive(&first, 1, MSG_PEEK);
  if (got != 1) return got;
  looked_ = true;
  peerIsPlain_ = first != kHandshakeRecord && (side_ == Side::acceptor || first != kAlertRecord);
  return got;
}

TlsSession::Step TlsSession::handshake() {
  if (up_) return Step::done;
  if (step_ == Step::failed) return step_;
  const CryptoUse use;
  if (!use) return fail(refusal());
  ERR_clear_error();
  const int outcome = SSL_do_handshake(ssl_.get());
  if (peerIsPlain_) {
    out_.clear();  // an alert, which it could not read
    problem_ = error(Code::permissionDenied, "it does not encrypt, and this side demands TLS");
    return step_ = Step::failed;
  }
  const int why = SSL_get_error(ssl_.get(), outcome);
  const bool flushed = flush();
  if (outcome == 1) {
    // The secret counts as a session that is resumed. Nothing else may have been agreed on.
    const bool bySecret = SSL_session_reused(ssl_.get()) == 1;
    if (bySecret == secret_.identity.empty()) return fail(describe());
    up_ = true;
    return step_ = Step::done;
  }
  if (why == SSL_ERROR_WANT_READ && errnum_ == 0 && !cutOff_)
    return step_ = flushed ? Step::wantsRead : Step::wantsWrite;
  return fail(describe());
}

TlsSession::Step TlsSession::fail(Status why) {
  problem_ = std::move(why);
  return step_ = Step::failed;
}

TlsMoved TlsSession::notUp() const {
  return step_ == Step::failed ? broken() : TlsMoved{};
}

TlsMoved TlsSession::broken() const {
  return {.errnum = cutOff_ ? ECONNABORTED : EPROTO};
}

TlsMoved TlsSession::breakBy(Status why) {
  problem_ = std::move(why);
  return broken();
}

TlsMoved TlsSession::read(std::span<const iovec> parts) {
  TlsMoved all;
  for (const iovec& part : parts) {
    for (size_t filled = 0; filled < part.iov_len;) {
      const TlsMoved one =
          readRecord(static_cast<char*>(part.iov_base) + filled, part.iov_len - filled);
      // What was read counts first; the next call meets the end again.
      if (one.bytes == 0) return all.bytes > 0 ? all : one;
      filled += one.bytes;
      all.bytes += one.bytes;
    }
  }
  return all;
}

TlsMoved TlsSession::readRecord(char* into, size_t size) {
  return nextRecord(into, size, SSL_read_ex);
}

size_t TlsSession::ready() {
  char first = 0;
  if (nextRecord(&first, 1, SSL_peek_ex).bytes == 0) return 0;
  return static_cast<size_t>(SSL_pending(ssl_.get()));
}

TlsMoved TlsSession::nextRecord(char* into, size_t size, ReadCall* call) {
  if (!problem_.ok()) return broken();
  if (!up_ && handshake() != Step::done) return notUp();
  const CryptoUse use;
  if (!use) return breakBy(refusal());
  ERR_clear_error();
  size_t got = 0;
  const int outcome = call(ssl_.get(), into, size, &got);
  if (outcome == 1) return {.bytes = got};
  const int why = SSL_get_error(ssl_.get(), outcome);
  if (why == SSL_ERROR_ZERO_RETURN) return {.ended = true};
  if (why == SSL_ERROR_WANT_READ && !cutOff_) return {};
  return breakBy(describe());
}

// The peer follows by itself: the record that goes out first says that others come with the next
// key. What it sends is its own affair.
void TlsSession::encryptRecord(const char* bytes, size_t size) {
  if (records_ == recordsPerKey_ && SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1) {
    records_ = 0;
    ++keyUpdates_;
  }
  ++records_;
  size_t written = 0;
  SSL_write_ex(ssl_.get(), bytes, size, &written);
  sealed_.push_back({out_.size(), size});
}

// Encrypts from the parts without their first `skip` bytes, `most` at the most, and answers how
// many it took. Neighbours share a record.
size_t TlsSession::encrypt(std::span<const iovec> parts, size_t skip, size_t most) {
  char gathered[kRecord];
  size_t taken = 0;
  while (taken < most) {
    iovec found[kMostParts];
    const auto record = partsAt(parts, skip + taken, std::min(kRecord, most - taken), found);
    const size_t size = sizeOf(record);
    if (size == 0) break;
    const char* from = gathered;
    size_t got = size;
    if (guarded_) {
      got = readGuarded(gathered, record);
    } else if (record.size() == 1) {
      from = static_cast<const char*>(record[0].iov_base);
    } else {
      char* to = gathered;
      for (const iovec& part : record)
        to = std::copy_n(static_cast<const char*>(part.iov_base), part.iov_len, to);
    }
    if (got > 0) encryptRecord(from, got);
    taken += got;
    if (got < size) break;
  }
  return taken;
}

TlsMoved TlsSession::write(std::span<const iovec> parts) {
  if (!problem_.ok()) return broken();
  if (!up_ && handshake() != Step::done) return notUp();
  const CryptoUse use;
  if (!use) return breakBy(refusal());
  const size_t size = sizeOf(parts);
  size_t done = 0;
  ERR_clear_error();
  while (errnum_ == 0) {
    const bool all = flush();
    done += std::exchange(left_, 0);
    if (!all || done >= size) break;
    if (encrypt(parts, done, kBatch) == 0) return {.bytes = done, .errnum = done > 0 ? 0 : EFAULT};
  }
  return {.bytes = done, .errnum = done > 0 ? 0 : errnum_};
}

size_t TlsSession::takeUncounted() {
  size_t bytes = std::exchange(left_, 0);
  for (const Sealed& record : sealed_) bytes += record.bytes;
  sealed_.clear();
  return bytes;
}

bool TlsSession::sayGoodbye() {
  if (!up_ || silenced_ || std::exchange(saidGoodbye_, true)) return false;
  const CryptoUse use;
  if (!use) return false;
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
  return errnum_ == 0 && flush();
}

std::string TlsSession::exported(std::string_view label) const {
  unsigned char bytes[kExported];
  const CryptoUse use;
  if (!use || SSL_export_keying_material(ssl_.get(), bytes, sizeof(bytes), label.data(),
                                         label.size(), nullptr, 0, 0) != 1)
    return {};
  return {reinterpret_cast<const char*>(bytes), sizeof(bytes)};
}

Status TlsSession::describe() const {
  if (cutOff_ && up_) {
    return error(Code::disconnected,
                 "the connection was cut off: it ended without the peer's goodbye");
  }
  const unsigned long code = ERR_peek_last_error();
  if (code == 0 && errnum_ != 0) return errnoStatus("TLS", errnum_);
  const char* reason = ERR_reason_error_string(code);
  std::string words = cutOff_ ? "the peer hung up" : reason ? reason : "the peer proved nothing";
  const long verified = SSL_get_verify_result(ssl_.get());
  if (ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED)
    words += fmt::format(": {}", X509_verify_cert_error_string(verified));
  if (up_ && !cutOff_ && ERR_GET_REASON(code) < SSL_AD_REASON_OFFSET)
    return error(Code::failed, "TLS: {}: its bytes were altered on the way", words);
  return error(Code::permissionDenied, "TLS handshake: {}: {}", words, hint());
}

std::string TlsSession::hint() const {
  if (!secret_.identity.empty()) return "both sides need the same secret, and no certificates";
  return "both sides need a certificate that is valid now, from the CA that the other one names";
}

}  // namespace hmc
