#pragma once

#include <memory>

#include "base/fd.h"
#include "hmc/result.h"

namespace hmc {

// Tells the control thread's loop when a socket is readable, but only while it is open. Asio wakes
// its thread for every packet of a descriptor that it knows, also when nobody asked, and only that
// thread can take the descriptor back; behind this set of one any thread can. Starts open. The
// caller orders open() and close().
class ReadGate {
 public:
  // The socket must outlive it.
  static Result<std::unique_ptr<ReadGate>> create(int socket);

  // Readable while the gate is open and the socket is, or broke.
  int fd() const { return set_.get(); }
  bool isOpen() const { return open_; }
  void open();
  void close();

 private:
  ReadGate(Fd set, int socket) : set_(std::move(set)), socket_(socket) {}

  const Fd set_;
  const int socket_;
  bool open_ = true;
};

}  // namespace hmc
