#pragma once

#include <string>

namespace hmc::control {

// Who a participant is. The id is random and new for every Node, so a process that restarts under
// its old name is somebody else: a new incarnation.
struct Identity {
  std::string id;          // 16 bytes
  std::string name;        // what its user calls it, for sentences
  std::string attributes;  // bytes that node/ writes and reads; control only carries them
};

}  // namespace hmc::control
