#include "base/peer_user.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"

namespace hmc {

Status checkSameUser(int socket) {
  ucred who{};
  socklen_t size = sizeof(who);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
    return errnoStatus("ask whose process the other end of a unix socket is");
  if (who.uid == geteuid()) return Status();
  return error(Code::permissionDenied,
               "the other end is a process of uid {}, and this one runs as uid {}: both must be of "
               "one user",
               who.uid, geteuid());
}

}  // namespace hmc
