#include "base/peer_user.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"

namespace hmc {

namespace {

#ifdef SO_PEERPIDFD
constexpr int kPeerPidfd = SO_PEERPIDFD;
#else
constexpr int kPeerPidfd = 77;  // C libraries before Linux 6.5 do not know it
#endif

Result<ucred> sameUser(int socket) {
  ucred who{};
  socklen_t size = sizeof(who);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
    return errnoStatus("ask whose process the other end of a unix socket is");
  if (who.uid == geteuid()) return who;
  return error(Code::permissionDenied,
               "the other end is a process of uid {}, and this one runs as uid {}: both must be of "
               "one user",
               who.uid, geteuid());
}

}  // namespace

Status checkSameUser(int socket) {
  return sameUser(socket).status();
}

Result<PeerProcess> sameUserProcess(int socket) {
  HMC_ASSIGN(const ucred who, sameUser(socket));
  int handle = -1;
  socklen_t size = sizeof(handle);
  if (getsockopt(socket, SOL_SOCKET, kPeerPidfd, &handle, &size) != 0) handle = -1;
  return PeerProcess{who.pid, Fd(handle)};
}

}  // namespace hmc
