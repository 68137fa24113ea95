#include "memory/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

namespace hmc {

namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

std::optional<uint64_t> numberOf(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;  // no such file, or "max"
}

// The number behind a word that begins a line.
uint64_t numberAfter(const std::string& path, const std::string& word) {
  std::ifstream file(path);
  for (std::string name; file >> name;) {
    uint64_t number = 0;
    if (name == word && file >> number) return number;
    std::getline(file, name);
  }
  return 0;
}

// The two generations of control groups call the same things by other names.
struct Names {
  const char* mount;
  const char* limit;
  const char* usage;
  const char* reclaimable;  // file pages that the kernel drops before it refuses memory
};
constexpr Names kSecond{"/sys/fs/cgroup", "/memory.max", "/memory.current", "inactive_file"};
constexpr Names kFirst{"/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                       "total_inactive_file"};

uint64_t roomIn(const std::string& folder, const Names& names) {
  const auto limit = numberOf(folder + names.limit);
  const auto usage = numberOf(folder + names.usage);
  if (!limit || !usage) return kNoLimit;
  const uint64_t dropped = numberAfter(folder + "/memory.stat", names.reclaimable);
  const uint64_t used = *usage - std::min(*usage, dropped);
  return *limit - std::min(*limit, used);
}

// Of the group at `path` and all above it. Where a container sees its own group as the root, the
// path leads nowhere and the root has the limit.
uint64_t roomAlong(const std::string& root, std::string path, const Names& names) {
  uint64_t room = kNoLimit;
  while (true) {
    std::string folder = root + names.mount;
    folder += path;
    room = std::min(room, roomIn(folder, names));
    if (path.empty()) return room;
    path.resize(std::min(path.size(), path.rfind('/')));
  }
}

uint64_t roomInGroups(const std::string& root) {
  std::ifstream groups(root + "/proc/self/cgroup");
  uint64_t room = kNoLimit;
  // "0::/path" or "4:memory,hugetlb:/path"
  for (std::string line; std::getline(groups, line);) {
    std::istringstream fields(line);
    std::string number;
    std::string controllers;
    std::string path;
    std::getline(fields, number, ':');
    std::getline(fields, controllers, ':');
    std::getline(fields, path);
    if (path == "/") path.clear();
    if (controllers.empty()) {
      room = std::min(room, roomAlong(root, path, kSecond));
    } else if (("," + controllers + ",").find(",memory,") != std::string::npos) {
      room = std::min(room, roomAlong(root, path, kFirst));
    }
  }
  return room;
}

}  // namespace

uint64_t availableMemory(const std::string& root) {
  const uint64_t machine = numberAfter(root + "/proc/meminfo", "MemAvailable:") * 1024;
  return std::min(machine, roomInGroups(root));
}

}  // namespace hmc
