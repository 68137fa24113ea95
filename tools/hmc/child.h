#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "hmc/deadline.h"
#include "hmc/result.h"

namespace hmc::tool {

// Another process of this program. Its standard input is held open as long as the object lives, so
// that it can see when we are gone; the destructor ends it.
class Child {
 public:
  static Result<std::unique_ptr<Child>> start(const std::vector<std::string>& arguments);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The next line that it prints.
  Result<std::string> readLine(Deadline deadline);

 private:
  Child(pid_t pid, int input, int output) : pid_(pid), input_(input), output_(output) {}

  const pid_t pid_;
  const int input_;
  const int output_;
  std::string unread_;
};

}  // namespace hmc::tool
