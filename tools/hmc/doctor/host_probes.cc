#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "doctor/host_checks.h"
#include "system_call.h"

// What only an attempt can find out.
namespace hmc::tool {

namespace {

// Runs in a child after fork(): system calls only. Answers 0 or an errno.
int readFrom(pid_t process, const volatile uint64_t* there, uint64_t expected) {
  uint64_t found = 0;
  iovec local{&found, sizeof(found)};
  iovec remote{const_cast<uint64_t*>(there), sizeof(found)};
  if (process_vm_readv(process, &local, 1, &remote, 1, 0) != sizeof(found)) return errno;
  return found == expected ? 0 : EIO;
}

}  // namespace

// The child reads the parent: the kernel allows a process more with its own children than with
// peers, which are seldom related.
Status tryProcessVm() {
  const volatile uint64_t word = 0x6d656d6f72792121;
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return systemError("start a process to try it with");
  if (child == 0) _exit(readFrom(parent, &word, word));
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return systemError("wait for the process that tries it");
  }
  if (!WIFEXITED(status)) return Status(Code::failed, "the process that tries it was killed");
  if (WEXITSTATUS(status) == 0) return Status();
  return systemError("the kernel forbids processes to read each other's memory",
                     WEXITSTATUS(status));
}

Status tryMemfd() {
  constexpr size_t kSize = 4096;
  const Fd fd(memfd_create("hmc-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return systemError("memfd_create");
  if (ftruncate(fd.get(), kSize) != 0) return systemError("give a memfd its size");
  void* at = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) return systemError("map a memfd");
  munmap(at, kSize);
  return Status();
}

}  // namespace hmc::tool
