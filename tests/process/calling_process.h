#pragma once

#include <chrono>
#include <string>

#include "netns.h"
#include "process.h"

namespace hmc::test {

// A process of caller_main.cc: does everything that can wait in one class to another process, each
// call with a timeout of kTimeout. What goes wrong is a failure of the test.
class CallingProcess : public Process {
 public:
  static constexpr std::chrono::milliseconds kTimeout{300};
  static constexpr std::chrono::milliseconds kLease{1000};

  // In a network namespace, unless that is "".
  CallingProcess(const std::string& what, const std::string& way, const std::string& space);

  // Makes it; `first` of the two.
  void make(const std::string& transport, const std::string& host, bool first);
  // Once, then: what the other one's meet() needs.
  std::string introduction();
  void meet(const std::string& introduction);
  // Has all calls made from now on.
  void begin();
  // Until each call has ended twice since the last mark, and has succeeded once.
  void allEnd();
  // Whether that comes within this time. False is no failure of the test.
  bool allEndWithin(std::chrono::seconds time);
  void mark();
  // Begins to end all calls and destroys everything.
  void end() { say("end"); }
  // After that: no call took longer than it may (HMC_TEST_SLACK_MS says how late it may be; without
  // it a busy machine has a minute), but for so long that the process was stopped.
  void expectInTime(std::chrono::milliseconds stopped = {});

 private:
  void expectOk(const Reply& reply) const;

  const std::string what_;
};

}  // namespace hmc::test
