#include "base/parcel.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cstring>

#include "base/error.h"

namespace hmc {

Status sendParcel(int socket, const Parcel& parcel) {
  if (parcel.bytes.size() > Parcel::kMostBytes || parcel.fds.size() > Parcel::kMostFds) {
    return error(Code::outOfRange,
                 "{} bytes and {} descriptors do not fit one message of {} and {}",
                 parcel.bytes.size(), parcel.fds.size(), Parcel::kMostBytes, Parcel::kMostFds);
  }
  iovec body{const_cast<char*>(parcel.bytes.data()), parcel.bytes.size()};
  const size_t size = parcel.fds.size() * sizeof(int);
  std::vector<char> space(size > 0 ? CMSG_SPACE(size) : 0);
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  if (size > 0) {
    message.msg_control = space.data();
    message.msg_controllen = space.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(size);
    for (size_t i = 0; i < parcel.fds.size(); ++i) {
      const int fd = parcel.fds[i].get();
      std::memcpy(CMSG_DATA(header) + i * sizeof(int), &fd, sizeof(int));
    }
  }
  const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(parcel.bytes.size())) return Status();
  return errnoStatus("send descriptors to another process");
}

Result<Parcel> receiveParcel(int socket) {
  Parcel parcel;
  parcel.bytes.resize(Parcel::kMostBytes);
  iovec body{parcel.bytes.data(), parcel.bytes.size()};
  std::vector<char> space(CMSG_SPACE(Parcel::kMostFds * sizeof(int)));
  msghdr message{};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  message.msg_control = space.data();
  message.msg_controllen = space.size();
  const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0) return errnoStatus("receive descriptors from another process");
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      parcel.fds.emplace_back(fd);
    }
  }
  // What did not fit is lost. So it is where this process is out of descriptors.
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    return error(Code::exhausted,
                 "not all descriptors of a message could be taken: raise the limit of open files "
                 "(ulimit -n)");
  }
  if ((message.msg_flags & MSG_TRUNC) != 0)
    return error(Code::outOfRange, "a message of more than {} bytes", Parcel::kMostBytes);
  parcel.bytes.resize(static_cast<size_t>(got));
  return parcel;
}

Result<Fd> duplicate(int fd) {
  Fd copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy) return errnoStatus("duplicate a descriptor");
  return copy;
}

Result<Parcel> copyOf(std::string_view bytes, const std::vector<Fd>& fds) {
  Parcel parcel{std::string(bytes), {}};
  for (const Fd& fd : fds) {
    HMC_ASSIGN(Fd copy, duplicate(fd.get()));
    parcel.fds.push_back(std::move(copy));
  }
  return parcel;
}

}  // namespace hmc
