#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "hmc/result.h"
#include "system_call.h"

namespace hmc::tool {

// A process that kills process groups when this process has ended, however it did: the kernel by
// itself ends only children, not what they have started.
class Guardian {
 public:
  static constexpr uint32_t kMostGroups = 4096;

  static Result<std::unique_ptr<Guardian>> start();
  ~Guardian();
  Guardian(Guardian&&) = delete;

  void watch(pid_t group) const { order(group); }
  // Before its number can be given to another.
  void forget(pid_t group) const { order(-group); }

 private:
  Guardian(pid_t pid, Fd orders) : pid_(pid), orders_(std::move(orders)) {}
  void order(pid_t number) const;

  const pid_t pid_;
  Fd orders_;
};

}  // namespace hmc::tool
