#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/fd.h"
#include "control/socket.h"
#include "hmc/result.h"

namespace hmc::control {

// A listening socket. Destroying it closes it and removes its socket file, if the file is still
// the one that it made. One thread at a time.
class Listener {
 public:
  // At the first of the address's meanings that is free.
  static Result<std::unique_ptr<Listener>> open(const Address& address, const Meanings& meanings);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // With the port that was picked.
  const Address& address() const { return address_; }
  int fd() const { return socket_.get(); }

  struct Accepted {
    Fd socket;       // not set: nobody is there, or errnum says why there is nobody
    int errnum = 0;  // the process or host has run out of something
  };
  Accepted accept();

 private:
  Listener(Address address, Fd socket);
  static Result<Fd> openTcp(Address& address, const Meanings& meanings);
  static Result<Fd> openUnix(const Address& address, const SocketAddress& at);

  const Address address_;
  const Fd socket_;
  dev_t device_ = 0;  // of the socket file that we made
  ino_t inode_ = 0;
};

}  // namespace hmc::control
