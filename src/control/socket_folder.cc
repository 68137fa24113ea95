#include "control/socket_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"

namespace hmc::control {

namespace {

// In a user namespace, users of the host that it does not know, root first of all, look like this
// one: a container without root finds its /tmp so.
bool isUnknownHere(uid_t user) {
  std::ifstream mapFile("/proc/self/uid_map");
  uint64_t inside = 0, outside = 0, count = 0;
  if (!(mapFile >> inside >> outside >> count) || count >= UINT32_MAX) return false;
  std::ifstream overflowFile("/proc/sys/kernel/overflowuid");
  uid_t overflow = 0;
  return (overflowFile >> overflow) && user == overflow;
}

}  // namespace

Status checkSocketFolder(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == 0 ? "/" : path.substr(0, slash);
  struct stat facts {};
  if (stat(folder.c_str(), &facts) != 0) return Status();
  if (facts.st_uid != 0 && facts.st_uid != geteuid() && !isUnknownHere(facts.st_uid)) {
    return error(Code::permissionDenied,
                 "the folder {} of the socket {} belongs to uid {}, who could put another socket "
                 "there; this process runs as uid {}: choose a folder of its own",
                 folder, path, facts.st_uid, geteuid());
  }
  if ((facts.st_mode & S_IWOTH) != 0 && (facts.st_mode & S_ISVTX) == 0) {
    return error(Code::permissionDenied,
                 "every user may put another socket into the folder {} of the socket {} (mode "
                 "{:o}): choose a folder of your own, or chmod +t {}",
                 folder, path, facts.st_mode & 07777, folder);
  }
  return Status();
}

}  // namespace hmc::control
