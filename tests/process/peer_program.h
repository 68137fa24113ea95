#pragma once

#include <hmc.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <istream>
#include <map>
#include <memory>
#include <string>
#include <thread>

namespace hmc::test {

// What the test program peer_main.cc can be told to do. Uses the public headers only.
class PeerProgram {
 public:
  PeerProgram();
  ~PeerProgram();
  // The answer to one line: "ok ..." or "error CODE sentence".
  std::string obey(const std::string& line);

 private:
  using Command = std::function<std::string(std::istream&)>;
  void addSetup();
  void addTransfers();
  void addText();
  void addMessages();
  void addRounds();
  void addObservation();

  status_t writeBuffer(const void* bytes, size_t size, size_t offset);
  status_t readBuffer(void* bytes, size_t size, size_t offset);

  // Puts or gets in a thread of its own until one fails.
  // put, get, putpipeline or getpipeline.
  status_t move(const std::string& what, const std::string& ip, uint16_t port, size_t size,
                ConnType type);
  std::string startLoop(std::istream& in);
  std::string joinLoop();
  // The handshake of the README: put, then tag; the reader checks, and acknowledges with a tag.
  std::string writeRounds(std::istream& in);
  std::string readRounds(std::istream& in);

  std::map<std::string, Command> commands_;
  std::shared_ptr<ConnBuffer> buffer_;
  std::unique_ptr<Communicator> communicator_;
  std::thread loop_;
  std::atomic<uint64_t> loopCount_{0};
  std::string loopEnd_;  // read after loop_ was joined
};

std::string answerFor(status_t status, const std::string& text = "");
ConnType readType(std::istream& in);

}  // namespace hmc::test
