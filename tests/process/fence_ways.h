#pragma once

#include <hmc/node.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "process.h"
#include "target_program.h"

namespace hmc::test {

// One of the ways in which a put reaches a peer's memory.
struct Way {
  std::string name;
  std::string transport;
  std::string kind;  // of the target's memory: own, allocated, device
  std::string path;  // how RemoteRegion::path() begins
  size_t size;       // of a transfer: so much that it can be met under way
  // What a target that is stopped between looking at its lease and receiving may still apply
  // (docs/gotchas.md), on each of two streams.
  size_t mostLate;
  bool tls = false;
  bool inOneProcess = false;  // of fakes that know one process
};

std::vector<Way> fenceWays();
inline void PrintTo(const Way& way, std::ostream* out) {
  *out << way.name;
}

// The memory that is put to and got from, and who has it.
class Target {
 public:
  // With room for that many transfers. whyNot() says what this machine lacks.
  Target(const Way& way, size_t windows, std::chrono::milliseconds lease);
  ~Target();
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  const std::string& whyNot() const { return whyNot_; }
  const std::string& address() const { return address_; }
  // Of a process, or null.
  Process* process() { return process_.get(); }

  // Once the origin has opened the region: host memory is then looked at without asking.
  void opened(const RemoteRegion& remote);
  // Writes that byte everywhere in a window; how many of its bytes are another one.
  void reuse(size_t window, int byte);
  size_t changed(size_t window, int byte);

 private:
  Reply ask(const std::string& line);
  std::string range(size_t window, int byte) const;

  const Way way_;
  const size_t size_;
  int file_ = -1;
  char* view_ = nullptr;  // of the same pages
  bool viewIsOurs_ = false;
  std::unique_ptr<Process> process_;
  std::unique_ptr<TargetProgram> here_;
  std::string address_;
  std::string whyNot_;
};

// The same, of memory of this process.
void fillWith(char* bytes, size_t size, int byte);
size_t differing(const char* bytes, size_t size, int byte);

}  // namespace hmc::test
