#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hmc/deadline.h"
#include "hmc/result.h"

namespace hmc::bench {

// Where the shell would find a program of that name.
std::optional<std::string> findProgram(const std::string& name);

struct Command {
  std::vector<std::string> words;        // the program first: a name or a path
  std::vector<std::string> environment;  // "NAME=value", in addition to ours
};

// Somebody else's program at work, in a process group of its own. The destructor ends the whole
// group, so that nothing is left of it whatever happened. For one thread, which must live as long:
// the kernel ends the program with the thread that started it.
class Program {
 public:
  static Result<std::unique_ptr<Program>> start(const Command& command);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // What it printed, once it has ended well. Else a sentence with the end of its standard error.
  Result<std::string> finish(Deadline deadline);
  bool running();

 private:
  Program(std::string name, pid_t pid) : name_(std::move(name)), pid_(pid) {}
  // False when the deadline passes first.
  bool collect(Deadline deadline);
  void reap(bool block);
  std::string complaint() const;

  const std::string name_;
  const pid_t pid_;
  int output_ = -1;
  int errors_ = -1;
  int ended_ = -1;  // a pidfd: readable once the process is over
  std::optional<int> waitStatus_;
  std::string printed_;
  std::string complained_;
};

Result<std::string> runProgram(const Command& command, Deadline deadline);

}  // namespace hmc::bench
