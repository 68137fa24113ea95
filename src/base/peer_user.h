#pragma once

#include <sys/types.h>

#include "base/fd.h"
#include "hmc/result.h"

namespace hmc {

// Ok when both ends of a unix socket belong to this process's user, by the kernel's word. Both ends
// ask: whoever may write to a folder can listen under any name in it, and an abstract name is free
// for all. To who dialled, the other end is the process that listens.
Status checkSameUser(int socket);

// The process at the other end of a unix socket, by the kernel's word.
struct PeerProcess {
  pid_t pid = 0;  // 0: it is in a pid namespace that this process does not see
  Fd handle;      // a pidfd; not set where the kernel has none to give (before Linux 6.5)
};
// The same check, and who it is.
Result<PeerProcess> sameUserProcess(int socket);

}  // namespace hmc
