#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "doctor/host_checks.h"

// What can only be found out by doing it.

namespace hmc::tool {

namespace {

Status failure(const std::string& what, int errnum) {
  return Status(Code::failed, what + ": " + std::strerror(errnum));
}

// Runs in a child after fork(): system calls only. Answers 0 or an errno.
int readFrom(pid_t process, const volatile uint64_t* there, uint64_t expected) {
  uint64_t found = 0;
  iovec local{&found, sizeof(found)};
  iovec remote{const_cast<uint64_t*>(there), sizeof(found)};
  if (process_vm_readv(process, &local, 1, &remote, 1, 0) != sizeof(found)) return errno;
  return found == expected ? 0 : EIO;
}

}  // namespace

// The child reads the parent: peers are seldom each other's ancestors, and to its own children the
// kernel lets a process do more.
Status tryProcessVm() {
  const volatile uint64_t word = 0x6d656d6f72792121;
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return failure("start a process to try it with", errno);
  if (child == 0) _exit(readFrom(parent, &word, word));
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return failure("wait for the process that tries it", errno);
  }
  if (!WIFEXITED(status)) return Status(Code::failed, "the process that tries it was killed");
  if (WEXITSTATUS(status) == 0) return Status();
  return failure("the kernel forbids processes to read each other's memory", WEXITSTATUS(status));
}

Status tryMemfd() {
  constexpr size_t kSize = 4096;
  const int fd = memfd_create("hmc-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return failure("memfd_create", errno);
  Status status;
  if (ftruncate(fd, kSize) != 0) {
    status = failure("give a memfd its size", errno);
  } else if (void* at = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
             at == MAP_FAILED) {
    status = failure("map a memfd", errno);
  } else {
    munmap(at, kSize);
  }
  close(fd);
  return status;
}

}  // namespace hmc::tool
