#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "hmc/result.h"

namespace hmc {

// Bytes and descriptors that travel together between two processes of one host.
struct Parcel {
  static constexpr size_t kMostBytes = size_t{64} << 10;
  static constexpr size_t kMostFds = 250;  // the kernel takes 253 in one message

  std::string bytes;
  std::vector<Fd> fds;
};

// One message of a unix socket that keeps messages apart (SOCK_SEQPACKET). Neither waits for
// another process: the caller has seen that there is something to receive.
Status sendParcel(int socket, const Parcel& parcel);
Result<Parcel> receiveParcel(int socket);

// A parcel of duplicates of these descriptors.
Result<Parcel> copyOf(std::string_view bytes, const std::vector<Fd>& fds);
Result<Fd> duplicate(int fd);

}  // namespace hmc
