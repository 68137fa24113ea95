#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>

#include <fmt/core.h>

#include "doctor/checks.h"
#include "system_call.h"

namespace hmc::tool {

namespace {

// A peer takes a control connection, four tcp streams and a descriptor of memory to be mapped.
constexpr uint64_t kDescriptorsPerPeer = 6;
constexpr uint64_t kDescriptorsOfNode = 32;
constexpr uint64_t kPeersWanted = 64;
constexpr uint64_t kDescriptorsAdvised = 65536;
constexpr uint64_t kPortsWanted = 1024;
constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kMemlockWanted = 1024 * kMiB;  // a buffer of the usual size, and staging
constexpr uint64_t kShmWanted = 64 * kMiB;

std::optional<uint64_t> numberIn(const std::string& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// The capability to lock memory beyond the limit, which root usually has.
bool mayLockAnything(const std::string& root) {
  constexpr uint64_t kIpcLock = uint64_t{1} << 14;
  std::ifstream file(root + "/proc/self/status");
  for (std::string word; file >> word;) {
    uint64_t capabilities = 0;
    if (word == "CapEff:" && file >> std::hex >> capabilities) return capabilities & kIpcLock;
  }
  return false;
}

std::string limitsFile(const char* item, const std::string& value) {
  return fmt::format(
      "echo '* - {} {}' | sudo tee /etc/security/limits.d/hmc-{}.conf  # then log in "
      "again",
      item, value, item);
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

Limit limitOf(int resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return {0, 0};
  auto value = [](rlim_t raw) { return raw == RLIM_INFINITY ? Limit::kUnlimited : raw; };
  return {value(limit.rlim_cur), value(limit.rlim_max)};
}

Finding checkProcessVm(const std::string& root, const Status& tried) {
  Finding finding{Level::ok, "process_vm", "processes may read and write each other's memory", ""};
  if (tried.ok()) return finding;
  finding.level = Level::warn;
  finding.detail =
      tried.message() +
      "; memory that a Node did not allocate passes through a shared ring, a second copy";
  auto scope = numberIn(root + "/proc/sys/kernel/yama/ptrace_scope");
  if (scope && *scope > 0) {
    finding.detail += fmt::format(" (kernel.yama.ptrace_scope is {})", *scope);
    finding.fix = *scope < 3 ? "sudo sysctl -w kernel.yama.ptrace_scope=0"
                             : "reboot without kernel.yama.ptrace_scope=3 in /etc/sysctl.d";
  } else {
    finding.fix = "docker run --cap-add SYS_PTRACE ...  # a container's profile forbids it";
  }
  return finding;
}

Finding checkMemfd(const Status& tried) {
  if (tried.ok()) return {Level::ok, "memfd", "memory can be made that peers map", ""};
  return {Level::fail, "memfd", tried.message() + "; Nodes cannot allocate memory",
          "uname -r  # memfd_create needs Linux 3.17, and a seccomp profile that allows it"};
}

Finding checkUserfaultfd(const Status& report) {
  if (report.ok()) {
    return {Level::ok, "userfaultfd", "mapped memory can be taken back from a stopped process", ""};
  }
  return {Level::warn, "userfaultfd",
          report.message() +
              "; a process that is stopped in the middle of a put into mapped memory may write on "
              "after it was given up",
          "docker run --device /dev/userfaultfd ...  # a container's profile forbids the call"};
}

Finding checkShm(const std::string& root) {
  const std::string path = root + "/dev/shm";
  struct statvfs info {};
  if (statvfs(path.c_str(), &info) != 0) {
    return {Level::warn, "/dev/shm", "is not there; HMC does not need it, UCX and MPI do",
            "sudo mount -t tmpfs -o mode=1777 tmpfs /dev/shm"};
  }
  const uint64_t room = uint64_t{info.f_bavail} * info.f_frsize;
  const std::string detail = fmt::format("{} MiB free", room / kMiB);
  if (room >= kShmWanted) return {Level::ok, "/dev/shm", detail, ""};
  return {Level::warn, "/dev/shm", detail + "; HMC does not need it, UCX and MPI do",
          "sudo mount -o remount,size=50% /dev/shm  # docker run --shm-size=1g"};
}

Finding checkMemlock(const std::string& root, const Limit& limit) {
  if (limit.soft == Limit::kUnlimited) return {Level::ok, "memlock", "unlimited", ""};
  const std::string detail = fmt::format("{} KiB may be locked", limit.soft / 1024);
  if (!hasRdmaDevice(root))
    return {Level::ok, "memlock", detail + "; enough, only RDMA locks memory", ""};
  if (mayLockAnything(root)) return {Level::ok, "memlock", "no limit for this user", ""};
  if (limit.soft >= kMemlockWanted) return {Level::ok, "memlock", detail, ""};
  return {
      Level::warn, "memlock", detail + "; RDMA locks what it registers",
      limit.hard == Limit::kUnlimited ? "ulimit -l unlimited" : limitsFile("memlock", "unlimited")};
}

Finding checkHugePages(const std::string& root) {
  auto pages = numberIn(root + "/proc/sys/vm/nr_hugepages");
  if (pages && *pages > 0)
    return {Level::ok, "huge pages", fmt::format("{} are reserved", *pages), ""};
  return {Level::warn, "huge pages",
          "none are reserved; they are optional and speed up large transfers",
          "sudo sysctl -w vm.nr_hugepages=512"};
}

Finding checkDescriptors(const Limit& limit) {
  if (limit.soft == Limit::kUnlimited) return {Level::ok, "descriptors", "unlimited", ""};
  const uint64_t spare = limit.soft > kDescriptorsOfNode ? limit.soft - kDescriptorsOfNode : 0;
  const uint64_t peers = spare / kDescriptorsPerPeer;
  const std::string detail =
      fmt::format("{} may be open, enough for about {} peers", limit.soft, peers);
  if (peers >= kPeersWanted) return {Level::ok, "descriptors", detail, ""};
  const uint64_t advised = std::min(kDescriptorsAdvised, limit.hard);
  const bool raised = advised > limit.soft;
  return {peers == 0 ? Level::fail : Level::warn, "descriptors", detail,
          raised ? fmt::format("ulimit -n {}", advised)
                 : limitsFile("nofile", std::to_string(kDescriptorsAdvised))};
}

Finding checkPorts(const std::string& root) {
  std::ifstream file(root + "/proc/sys/net/ipv4/ip_local_port_range");
  uint64_t first = 0;
  uint64_t last = 0;
  if (!(file >> first >> last) || last < first)
    return {Level::warn, "port range",
            "the kernel does not say which ports it uses for connections",
            "cat /proc/sys/net/ipv4/ip_local_port_range"};
  const uint64_t count = last - first + 1;
  const std::string detail = fmt::format("{} ports for connections, {} to {}", count, first, last);
  if (count >= kPortsWanted) return {Level::ok, "port range", detail, ""};
  return {Level::warn, "port range", detail + ", few for many peers over tcp",
          "sudo sysctl -w net.ipv4.ip_local_port_range='32768 60999'"};
}

Finding checkSettings(const std::vector<SettingReport>& settings) {
  std::string problems;
  std::string fix;
  for (const auto& setting : settings) {
    if (setting.problem.empty()) continue;
    problems += (problems.empty() ? "" : "; ") + setting.problem;
    fix += (fix.empty() ? "unset " : " ") + setting.variable;
  }
  if (problems.empty()) return {Level::ok, "settings", "all environment variables are valid", ""};
  return {Level::fail, "settings", problems, fix};
}

Finding checkSecurity(const SecurityReport& security) {
  const char* what = "security";
  if (!security.problem.empty()) {
    return {Level::fail, what, security.problem,
            "export HMC_SECRET=$(openssl rand -hex 32)  # in all processes"};
  }
  if (security.open) {
    return {Level::warn, what, "over loopback Nodes let in " + security.host, "unset HMC_COOKIE"};
  }
  return {Level::ok, what, "over loopback Nodes let in " + security.host, ""};
}

std::vector<Finding> checkHost() {
  std::vector<Finding> findings{
      checkSettings(settingsReport()),           checkSecurity(securityReport()),
      checkProcessVm("", tryProcessVm()),        checkMemfd(tryMemfd()),
      checkUserfaultfd(mappedMemoryReport()),    checkShm(""),
      checkMemlock("", limitOf(RLIMIT_MEMLOCK)), checkHugePages(""),
      checkDescriptors(limitOf(RLIMIT_NOFILE)),  checkPorts("")};
  const auto rdma = checkRdma("", tryDeviceFiles(""), rdmaReport());
  findings.insert(findings.end(), rdma.begin(), rdma.end());
  const auto memory = memoryReport();
  const auto accelerators = checkAccelerators(findAccelerators(""), memory);
  findings.insert(findings.end(), accelerators.begin(), accelerators.end());
  return findings;
}

}  // namespace hmc::tool
