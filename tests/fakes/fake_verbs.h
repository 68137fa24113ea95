#pragma once

#include <memory>

#include "transport/verbs/memory.h"

// A libibverbs of two devices that register memory and do nothing else.
namespace hmc::test {

struct FakeVerbs {
  // What its registering functions do.
  int hostError = 0;          // errno of every reg_mr, 0 to succeed
  bool hostReadOnly = false;  // reg_mr with local write fails with EFAULT
  int dmabufError = 0;
  bool hasDmabuf = true;
  // What they were asked.
  int registered = 0;
  int deregistered = 0;
  int lastAccess = 0;
  int lastDmabuf = -1;

  FakeVerbs();
  ~FakeVerbs();
  std::unique_ptr<verbs::Nics> open(int count = 1);
};

}  // namespace hmc::test
