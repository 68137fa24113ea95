#include "base/host_id.h"

#include <sys/stat.h>

#include <fstream>

namespace hmc {

std::string hostId() {
  std::string boot;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  struct stat space {};
  if (!std::getline(file, boot) || boot.empty() || stat("/proc/self/ns/net", &space) != 0) {
    return {};
  }
  return boot + "/" + std::to_string(space.st_ino);
}

}  // namespace hmc
