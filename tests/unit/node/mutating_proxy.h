#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/event_fd.h"
#include "base/fd.h"

namespace hmc::test {

// Stands between two Nodes: passes on their control connection and, because it puts its own port in
// the place of the acceptor's, the streams of their tcp links. It changes what one direction of
// one of these connections carries, once, after as many bytes as it was told.
class MutatingProxy {
 public:
  enum class Kind { flip, cut, insert, drop, swap, repeat, none };
  struct Mutation {
    Kind kind = Kind::none;
    size_t connection = 0;  // in the order in which they come up: the control connection first
    bool toAcceptor = false;
    size_t after = 0;  // bytes
    uint64_t seed = 0;
  };

  MutatingProxy(uint16_t acceptor, const Mutation& mutation);
  ~MutatingProxy();

  uint16_t port() const { return port_; }
  bool hasMutated() const { return mutated_; }
  // Connections that it has passed on, the control connection included.
  size_t accepted() const { return accepted_; }

 private:
  struct Connection {
    size_t number;
    Fd ends[2];                 // the dialler's, the acceptor's
    size_t passed[2] = {0, 0};  // from that end
    bool over = false;
  };

  void serve();
  void accept(const Fd& listener, uint16_t target);
  void pass(Connection& connection, size_t from);
  void mutate(std::string& bytes, size_t at, Connection& connection);

  const Mutation mutation_;
  std::mt19937_64 random_;
  uint16_t port_ = 0, dataPort_ = 0;
  Fd control_, data_;  // made after the ports that they set
  const uint16_t controlTarget_;
  uint16_t dataTarget_ = 0;
  std::list<Connection> connections_;
  std::atomic<size_t> accepted_{0};
  std::atomic<bool> mutated_{false};
  std::atomic<bool> stopped_{false};
  EventFd wake_;
  std::thread thread_;
};

}  // namespace hmc::test
