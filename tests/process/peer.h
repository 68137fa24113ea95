#pragma once

#include <cstdint>
#include <string>

#include "process.h"

namespace hmc::test {

// A program around one Communicator, told what to do by lines: see peer_program.cc.
class Peer : public Process {
 public:
  explicit Peer(const Environment& environment = {}) : Process(command(), environment) {}
  // In a network namespace of that name.
  Peer(const std::string& netns, const Environment& environment)
      : Process(command(netns), environment) {}
  // Whatever happened to it, a peer that was not killed ends by itself and cleanly.
  ~Peer();

  Reply allocate(size_t size) { return ask("communicator " + std::to_string(size)); }
  // Allocates and listens, on ports that it picks.
  Reply serve(size_t size, const std::string& type = "AUTO", const std::string& ip = "127.0.0.1");
  // Listens on the ports that another had.
  Reply serveAs(const Peer& other, size_t size, const std::string& type = "AUTO");
  Reply connectTo(const Peer& server, const std::string& type, uint32_t rank = 1);

  // `what` is put or get; the server's ConnBuffer is the other side.
  Reply transfer(const std::string& what, const Peer& server, size_t local, size_t remote,
                 size_t size, const std::string& type);
  Reply fill(size_t offset, size_t size, int seed) { return pattern("fill", offset, size, seed); }
  Reply check(size_t offset, size_t size, int seed) { return pattern("check", offset, size, seed); }
  Reply connected(const Peer& server, const std::string& type) {
    return ask("checkconn " + server.address() + " " + type);
  }

  // "IP PORT" of its data listener.
  std::string address() const { return ip_ + " " + std::to_string(dataPort_); }
  const std::string& ip() const { return ip_; }
  uint16_t dataPort() const { return dataPort_; }
  uint16_t controlPort() const { return controlPort_; }

 private:
  static std::vector<std::string> command(const std::string& netns = "");
  Reply listen(const std::string& type);
  Reply pattern(const std::string& what, size_t offset, size_t size, int seed);

  std::string ip_ = "127.0.0.1";
  uint16_t dataPort_ = 0;
  uint16_t controlPort_ = 0;
};

}  // namespace hmc::test
