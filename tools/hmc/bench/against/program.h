#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hmc/deadline.h"
#include "hmc/result.h"
#include "system_call.h"

namespace hmc::bench {

// Where the shell would find a program of that name.
std::optional<std::string> findProgram(const std::string& name);
// An error that names the Debian package when there is no such program.
Status needProgram(const std::string& name, const char* package);
// The error for output in which nothing could be read; quotes its beginning.
Status nothingMeasured(const std::string& program, const std::string& printed);

struct Command {
  std::vector<std::string> words;        // the program first: a name or a path
  std::vector<std::string> environment;  // "NAME=value", in addition to ours
};

// A program that runs in a process group of its own. The destructor ends the whole group, so
// nothing is left behind. Use it from one thread that outlives it: the kernel ends the program with
// the thread that started it.
class Program {
 public:
  static Result<std::unique_ptr<Program>> start(const Command& command);
  ~Program();
  Program(Program&&) = delete;

  // What it printed, once it has ended with status 0. Else an error with the end of its stderr.
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
  tool::Fd output_;
  tool::Fd errors_;
  tool::Fd ended_;  // a pidfd: readable once the process has ended
  std::optional<int> waitStatus_;
  std::string printed_;
  std::string complained_;
};

Result<std::string> runProgram(const Command& command, Deadline deadline);

}  // namespace hmc::bench
