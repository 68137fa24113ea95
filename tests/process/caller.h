#pragma once

#include <hmc/deadline.h>
#include <hmc/status.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hmc::test {

// One call that can wait.
struct Call {
  const char* name;
  std::function<Status(Timeout)> run;
  // How long after its timeout it may end.
  std::chrono::milliseconds later{0};
  // Succeeds now and then while nothing is wrong.
  bool works = true;
  // Gives back what it has made. Not measured, but ends.
  std::function<void()> after{};
};

// Between which two processes.
struct Circumstances {
  std::string transport;
  std::chrono::milliseconds lease;
  std::string host;  // where we listen
  bool first;        // of the two
};

// One of two processes that do all that can wait in one class to each other.
class Caller {
 public:
  virtual ~Caller() = default;
  // For the other one's meet().
  virtual std::string introduction() const = 0;
  // May be called again after it failed.
  virtual Status meet(const std::string& introduction) = 0;
  // What all of them may do at once. Each is called by one thread.
  virtual std::vector<Call> calls() = 0;
  // How long the destructor may take.
  virtual std::chrono::milliseconds ends() const = 0;
};

// Of "node", "pool", "collective", "store", "communicator", "ctrl" or "memfabric".
std::unique_ptr<Caller> makeCaller(const std::string& what, const Circumstances& circumstances);

std::unique_ptr<Caller> makeNodeCaller(const Circumstances& circumstances);
std::unique_ptr<Caller> makePoolCaller(const Circumstances& circumstances);
std::unique_ptr<Caller> makeCollectiveCaller(const Circumstances& circumstances);
std::unique_ptr<Caller> makeStoreCaller(const Circumstances& circumstances);
std::unique_ptr<Caller> makeCommunicatorCaller(const Circumstances& circumstances);
std::unique_ptr<Caller> makeCtrlCaller(const Circumstances& circumstances);
std::unique_ptr<Caller> makeMemFabricCaller(const Circumstances& circumstances);

}  // namespace hmc::test
