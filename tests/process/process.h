#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace hmc::test {

// Longer than anything here takes, also on a busy machine under a sanitizer.
inline constexpr std::chrono::seconds kPatience{60};

// One answer of a process: "ok ..." or "error CODE sentence".
struct Reply {
  bool ok = false;
  std::string code;  // the status_t's name, "" when ok; "SILENT" or "GONE" when no answer came
  std::string text;
  friend std::ostream& operator<<(std::ostream& out, const Reply& reply) {
    return out << (reply.ok ? "ok " : "error " + reply.code + " ") << reply.text;
  }
};

// A child process that takes a line and answers a line. The destructor kills and reaps it. For one
// thread at a time.
class Process {
 public:
  using Environment = std::map<std::string, std::string>;

  explicit Process(std::vector<std::string> command, const Environment& environment = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // A command whose answer is fetched later.
  void say(const std::string& line);
  Reply answer(std::chrono::milliseconds timeout = kPatience);
  Reply ask(const std::string& line) {
    say(line);
    return answer();
  }

  // Each returns when the kernel has done it.
  void kill();
  void stop();
  void awaitStop();  // that it does by itself
  void resume();
  // Closes its input and answers its exit status, 128 + signal for a violent end, -1 when it does
  // not end in time.
  int finish();

  pid_t pid() const { return pid_; }
  // Neither ended nor stopped by us.
  bool runs() const { return pid_ >= 0 && !stopped_; }

 private:
  pid_t pid_ = -1;
  int socket_ = -1;  // the child's standard input and output
  bool stopped_ = false;
  int status_ = -1;  // its exit status once pid_ is -1
  std::string heard_;
};

// A port that nobody listens on, outside the range that the kernel gives to dialling sockets.
uint16_t freePort();

void pauseBetweenLooks();

// How often a test repeats what it does: HMC_TEST_CYCLES, or so often.
int cyclesOr(int usual);

// Looks again and again until it is so; false when kPatience has passed.
template <class Condition>
bool eventually(Condition condition) {
  auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    pauseBetweenLooks();
  }
  return true;
}

}  // namespace hmc::test
