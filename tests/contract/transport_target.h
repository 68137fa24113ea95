#pragma once

#include <sys/types.h>

#include <string>

#include "base/fd.h"
#include "contract/transport_contract.h"

namespace hmc::contract {

// A peer process: this program again, with --target. It registers memory, connects one link and
// then only obeys commands, so that whatever arrives in its memory was put there one-sidedly.
class TargetProcess {
 public:
  struct Options {
    std::string subject;
    size_t size = 0;
    std::chrono::milliseconds lease{};  // it hears a heartbeat every 20 ms
    bool initiator = false;
  };
  static Result<std::unique_ptr<TargetProcess>> start(const Options& options);
  ~TargetProcess();

  const std::string& address() const { return address_; }
  const std::string& key() const { return key_; }
  // What the target answers to a command: "connect HEX", "fill SEED", "check SEED", "quit".
  Result<std::string> ask(const std::string& command);
  // SIGSTOP returns when the process has stopped.
  void send(int signal);

 private:
  TargetProcess(pid_t pid, Fd socket) : pid_(pid), socket_(std::move(socket)) {}
  Result<std::string> readLine();

  const pid_t pid_;
  const Fd socket_;
  std::string unread_;
  std::string address_;
  std::string key_;
};

// The other side: main() of the started process.
int runTarget(int argc, char** argv);

}  // namespace hmc::contract
