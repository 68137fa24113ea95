#include "peer.h"

#include <gtest/gtest.h>

namespace hmc::test {

namespace {

std::string words(std::initializer_list<std::string> parts) {
  std::string line;
  for (const auto& part : parts) line += (line.empty() ? "" : " ") + part;
  return line;
}

}  // namespace

std::vector<std::string> Peer::command(const std::string& netns) {
  if (netns.empty()) return {HMC_TEST_PEER};
  return {"ip", "netns", "exec", netns, HMC_TEST_PEER};
}

Peer::~Peer() {
  if (!runs()) return;
  EXPECT_EQ(finish(), 0) << "the end of a peer";
}

Reply Peer::serve(size_t size, const std::string& type, const std::string& ip) {
  Reply made = allocate(size);
  if (!made.ok) return made;
  ip_ = ip;
  for (int tries = 0;; ++tries) {
    dataPort_ = freePort();
    controlPort_ = freePort();
    Reply opened = listen(type);
    // Somebody else may have taken the port in between.
    bool taken = opened.text.find("in use") != std::string::npos;
    if (opened.ok || !taken || tries == 5) return opened;
  }
}

Reply Peer::serveAs(const Peer& other, size_t size, const std::string& type) {
  ip_ = other.ip_;
  dataPort_ = other.dataPort_;
  controlPort_ = other.controlPort_;
  Reply made = allocate(size);
  return made.ok ? listen(type) : made;
}

Reply Peer::listen(const std::string& type) {
  return ask(words({"server", address(), std::to_string(controlPort_), "-", type}));
}

Reply Peer::connectTo(const Peer& server, const std::string& type, uint32_t rank) {
  return ask(words({"connect 0", std::to_string(rank), server.address(),
                    std::to_string(server.controlPort_), type}));
}

Reply Peer::transfer(const std::string& what, const Peer& server, size_t local, size_t remote,
                     size_t size, const std::string& type) {
  return ask(words({what, server.address(), std::to_string(local), std::to_string(remote),
                    std::to_string(size), type}));
}

Reply Peer::pattern(const std::string& what, size_t offset, size_t size, int seed) {
  return ask(words({what, std::to_string(offset), std::to_string(size), std::to_string(seed)}));
}

}  // namespace hmc::test
