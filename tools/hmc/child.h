#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "hmc/deadline.h"
#include "hmc/result.h"
#include "system_call.h"

namespace hmc::tool {

// Another process of this program. Its standard input stays open while this object lives, so the
// child can see when we are gone. The destructor ends it.
class Child {
 public:
  static Result<std::unique_ptr<Child>> start(const std::vector<std::string>& arguments);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The next line that it prints. "error SENTENCE" is that error.
  Result<std::string> readLine(Deadline deadline);

 private:
  Child(pid_t pid, Fd input, Fd output)
      : pid_(pid), input_(std::move(input)), output_(std::move(output)) {}

  const pid_t pid_;
  Fd input_;
  Fd output_;
  std::string unread_;
};

// What the child prints first: its address, or why it has none. Returns whether it has one.
bool tellParent(const Result<std::string>& address);
// In the child: returns when the parent is gone.
void waitForParentToEnd();

}  // namespace hmc::tool
