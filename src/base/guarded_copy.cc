#include "base/guarded_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/fd.h"

namespace hmc {

namespace {

bool isForbidden(int errnum) {
  return errnum == EPERM || errnum == ENOSYS;
}

// For memory that the kernel reads and writes, but does not look up as pages: what a driver has
// mapped. Slow, and rare.
size_t copyThroughPipe(char* to, const char* from, size_t size) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return 0;
  const Fd out(ends[0]);
  const Fd in(ends[1]);
  constexpr size_t kStep = 4096;
  size_t done = 0;
  while (done < size) {
    const ssize_t there = write(in.get(), from + done, std::min(size - done, kStep));
    if (there <= 0) break;
    const ssize_t here = read(out.get(), to + done, static_cast<size_t>(there));
    if (here > 0) done += static_cast<size_t>(here);
    if (here != there) break;
  }
  return done;
}

}  // namespace

size_t readGuarded(void* to, std::span<const iovec> from) {
  char* at = static_cast<char*>(to);
  size_t size = 0;
  for (const iovec& part : from) size += part.iov_len;
  const iovec all{to, size};
  const ssize_t got = process_vm_readv(getpid(), &all, 1, from.data(), from.size(), 0);
  if (got == static_cast<ssize_t>(size)) return size;
  if (got < 0 && isForbidden(errno)) {
    for (const iovec& part : from)
      at = std::copy_n(static_cast<char*>(part.iov_base), part.iov_len, at);
    return size;
  }
  size_t done = 0;
  for (const iovec& part : from) {
    const size_t copied =
        copyThroughPipe(at + done, static_cast<const char*>(part.iov_base), part.iov_len);
    done += copied;
    if (copied < part.iov_len) break;
  }
  return done;
}

bool readGuarded(void* to, const void* from, size_t size) {
  const iovec part{const_cast<void*>(from), size};
  return readGuarded(to, {&part, 1}) == size;
}

bool writeGuarded(void* to, const void* from, size_t size) {
  const iovec ours{const_cast<void*>(from), size};
  const iovec theirs{to, size};
  const ssize_t got = process_vm_writev(getpid(), &ours, 1, &theirs, 1, 0);
  if (got == static_cast<ssize_t>(size)) return true;
  if (got < 0 && isForbidden(errno)) {
    std::memcpy(to, from, size);
    return true;
  }
  return copyThroughPipe(static_cast<char*>(to), static_cast<const char*>(from), size) == size;
}

}  // namespace hmc
