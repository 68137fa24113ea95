#pragma once

#include <openssl/ssl.h>
#include <sys/uio.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hmc/status.h"

namespace hmc {

struct TlsMoved {
  size_t bytes = 0;    // with no error and no end, 0 means: not now, wait for the socket
  bool ended = false;  // read only: the peer said that it sends no more, in words nobody can forge
  // The session broke: problem() says how. Or, from write() alone, EFAULT: see guardMemory().
  int errnum = 0;
};

// What both ends of a session know, and what it is called; empty where certificates are used.
struct TlsSecret {
  std::string identity;
  std::string secret;
};

// One TLS connection over a non-blocking socket: nothing here waits. For one thread at a time.
//
// write() keeps what was encrypted and did not fit into the socket, and counts it when it has left:
// a caller that got 0 offers the same bytes again, as it does with a socket.
class TlsSession {
 public:
  enum class Side { dialler, acceptor };
  enum class Step { done, wantsRead, wantsWrite, failed };
  // A record's largest content.
  static constexpr size_t kRecord = 16384;
  // AES-GCM should not protect more than 2^24.5 records with one key (RFC 8446, 5.5).
  static constexpr uint64_t kRecordsPerKey = uint64_t{1} << 24;

  // Takes another key for what it sends after that many records.
  TlsSession(SSL* ssl, int socket, Side side, TlsSecret secret,
             uint64_t recordsPerKey = kRecordsPerKey);
  // Says goodbye, if the socket takes it.
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Until it is done or has failed; read() and write() call it, too.
  Step handshake();
  bool isUp() const { return up_; }
  // The last step of the handshake waits for the peer.
  bool awaitsPeer() const { return !up_ && step_ == Step::wantsRead; }
  // The peer's first bytes are not TLS. They are still in the socket.
  bool peerIsPlain() const { return peerIsPlain_; }

  // Fills as much as there is.
  TlsMoved read(std::span<const iovec> parts);
  // The same, of one record at the most: with room for 16 KiB nothing is left buffered, unless the
  // context reads ahead.
  TlsMoved readRecord(char* into, size_t size);
  // So many bytes of the next record are decrypted: reading them is a copy, without a system call.
  size_t ready();
  TlsMoved write(std::span<const iovec> parts);
  // What write() gets may be memory that nobody can read any more: it then answers EFAULT where it
  // reaches that, and the session goes on.
  void guardMemory() { guarded_ = true; }
  // How many bytes of the caller's are encrypted and perhaps partly with the peer, although write()
  // has not counted them; from now on they count as written.
  size_t takeUncounted();
  // Bytes were read from the socket that read() has not answered yet.
  bool buffered() const { return SSL_has_pending(ssl_.get()) == 1; }
  // We send no more: the peer's read() answers `ended`. Once; false when the socket did not take
  // it.
  bool sayGoodbye();
  // Nothing more goes out, not even what is encrypted already.
  void silence() { silenced_ = true; }

  // What to say once this process is ending: see CryptoUse.
  static Status refusal();
  // Why it broke, in OpenSSL's words and ours; ok while it has not.
  const Status& problem() const { return problem_; }
  // 32 bytes that both ends of this session know and nobody else, in every session others.
  std::string exported(std::string_view label) const;

  const TlsSecret& secret() const { return secret_; }
  // How often what we send got another key.
  uint64_t keyUpdates() const { return keyUpdates_; }

 private:
  static constexpr size_t kBatch = 4 * kRecord;  // what one write to the socket gathers
  struct Free {
    void operator()(SSL* ssl) const;
  };

  static int bioRead(BIO* bio, char* into, int size);
  static int bioWrite(BIO* bio, const char* bytes, int size);
  static long bioControl(BIO* bio, int command, long, void*);
  static BIO_METHOD* bioMethod();

  Step fail(Status why);
  ssize_t receive(void* into, size_t size, int flags) const;
  ssize_t look();
  using ReadCall = int(SSL* ssl, void* into, size_t size, size_t* got);
  TlsMoved nextRecord(char* into, size_t size, ReadCall* call);
  TlsMoved notUp() const;
  TlsMoved broken() const;
  TlsMoved breakBy(Status why);
  Status describe() const;
  std::string hint() const;
  // False when the socket took no more, or broke: then errnum_ is set.
  bool flush();
  size_t encrypt(std::span<const iovec> parts, size_t skip, size_t most);
  void encryptRecord(const char* bytes, size_t size);

  const std::unique_ptr<SSL, Free> ssl_;
  const int socket_;
  const Side side_;
  const TlsSecret secret_;
  const uint64_t recordsPerKey_;
  uint64_t records_ = 0;  // that the key protects so far
  uint64_t keyUpdates_ = 0;
  bool guarded_ = false;
  Step step_ = Step::wantsWrite;
  bool up_ = false;
  bool looked_ = false;
  bool peerIsPlain_ = false;
  bool saidGoodbye_ = false;
  bool silenced_ = false;
  bool cutOff_ = false;  // the socket ended
  int errnum_ = 0;       // of the socket
  Status problem_;

  std::vector<char> out_;  // encrypted; from sent_ on not in the socket yet
  size_t sent_ = 0;
  // A record is counted as soon as all of it has left: the peer can read it, and answer.
  struct Sealed {
    size_t end;    // in out_
    size_t bytes;  // the caller's
  };
  std::deque<Sealed> sealed_;  // in out_, not counted yet
  size_t left_ = 0;            // the caller's bytes of records that have left since
};

}  // namespace hmc
