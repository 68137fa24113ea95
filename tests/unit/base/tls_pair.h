#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <memory>
#include <string>
#include <utility>

#include "base/fd.h"
#include "base/tls_context.h"

namespace hmc::test {

using Context = std::shared_ptr<TlsContext>;

inline const TlsOptions kBySecret{.mode = TlsOptions::Mode::required};

inline Context contextOf(const TlsOptions& options, const std::string& secret = "") {
  auto made = TlsContext::create(options, secret);
  EXPECT_TRUE(made.ok()) << made.status().toString();
  return *made;
}

inline TlsMoved readInto(TlsSession& session, std::string& into) {
  const iovec part{into.data(), into.size()};
  return session.read({&part, 1});
}
inline TlsMoved write(TlsSession& session, const std::string& bytes) {
  const iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  return session.write({&part, 1});
}

// Two ends of a socket pair. Nothing blocks, so that one thread plays both.
struct TlsPair {
  TlsPair(Context forDialler, Context forAcceptor)
      : contexts{std::move(forDialler), std::move(forAcceptor)} {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    diallerFd = Fd(fds[0]);
    acceptorFd = Fd(fds[1]);
    dialler = *contexts[0]->dial(fds[0]);
    acceptor = *contexts[1]->accept(fds[1]);
  }
  // Until neither side gets on.
  bool shakeHands() {
    for (int i = 0; i < 10; ++i) {
      dialler->handshake();
      acceptor->handshake();
    }
    return dialler->isUp() && acceptor->isUp();
  }
  // What the dialler learns when the acceptor has looked at what it was shown.
  Status diallersProblem() {
    shakeHands();
    std::string bytes(1, '\0');
    readInto(*dialler, bytes);
    return dialler->problem();
  }

  Context contexts[2];
  Fd diallerFd;
  Fd acceptorFd;
  std::unique_ptr<TlsSession> dialler;
  std::unique_ptr<TlsSession> acceptor;
};

}  // namespace hmc::test
