#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hmc/deadline.h"
#include "hmc/result.h"
#include "system_call.h"

// Other programs, and other processes of this one.
namespace hmc::tool {

// Where the shell would find a program of that name.
std::optional<std::string> findProgram(const std::string& name);
// A file of ours, such as "share/hmc/name", beside or above the running program: installed, or in a
// build folder.
Result<std::string> findOwnFile(const std::string& name);
// An error that names the Debian package when there is no such program.
Status needProgram(const std::string& name, const char* package);
// The error for output in which nothing could be read; quotes its beginning.
Status nothingMeasured(const std::string& program, const std::string& printed);

// Our environment, with the additions ("NAME=value") in place of what they replace.
std::vector<std::string> environmentWith(const std::vector<std::string>& additions);
// For execve(): valid while the texts are.
std::vector<char*> pointersTo(const std::vector<std::string>& texts);

struct Pipe {
  Fd read;
  Fd write;
};
Result<Pipe> makePipe();

struct Command {
  std::vector<std::string> words;        // the program first: a name or a path
  std::vector<std::string> environment;  // "NAME=value", in addition to ours
};

// A program that runs in a process group of its own. The destructor ends the whole group, so
// nothing is left behind. Use it from one thread that outlives it: the kernel ends the program with
// the thread that started it.
class Program {
 public:
  enum class Errors { kept, ours };  // its standard error: for finish(), or the same as ours
  static Result<std::unique_ptr<Program>> start(const Command& command,
                                                Errors errors = Errors::kept);
  ~Program();
  Program(Program&&) = delete;

  // The first line that it prints.
  Result<std::string> firstLine(Deadline deadline);
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
  Fd output_;
  Fd errors_;
  Fd ended_;  // a pidfd: readable once the process has ended
  std::optional<int> waitStatus_;
  std::string printed_;
  std::string complained_;
};

Result<std::string> runProgram(const Command& command, Deadline deadline);

// Starts a server that ends after one client, then the client, again until the server listens.
// Answers what the client printed.
Result<std::string> runServerAndClient(const Command& server, const Command& client,
                                       Deadline deadline);

// Another process of this program, which listens at an address.
struct OtherProcess {
  std::unique_ptr<Program> program;
  std::string address;
};
Result<OtherProcess> startOtherProcess(std::vector<std::string> arguments);
// What that process prints first: its address, or why it has none. Returns whether it has one.
bool tellParent(const Result<std::string>& address);

}  // namespace hmc::tool
