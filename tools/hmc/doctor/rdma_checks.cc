#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include "doctor/checks.h"
#include "doctor/host_files.h"
#include "system_call.h"

namespace hmc::tool {

namespace {

constexpr const char* kDevices = "/sys/class/infiniband";
constexpr const char* kFiles = "/sys/class/infiniband_verbs";

Finding checkFile(const DeviceFile& file) {
  Finding finding{Level::ok, file.device, file.path + " can be opened", ""};
  if (file.error == 0) return finding;
  finding.level = Level::warn;
  finding.detail = fmt::format("{} cannot be opened: {}", file.path, std::strerror(file.error));
  if (file.error == ENOENT || file.error == ENXIO) {
    finding.fix =
        "sudo modprobe ib_uverbs  # in a container: docker run --device /dev/infiniband ...";
  } else {
    finding.fix = fmt::format(
        "sudo chmod a+rw {}  # or for good, by the rules of: apt install rdma-core", file.path);
  }
  return finding;
}

Finding checkLibrary(const RdmaReport& report) {
  if (report.problem.empty()) return {Level::ok, "RDMA library", report.library, ""};
  const char* usual = report.library.empty() ? "apt install libibverbs1 ibverbs-providers"
                                             : "rdma link; ibv_devinfo -v";
  return {Level::warn, "RDMA library", report.problem, report.fix.empty() ? usual : report.fix};
}

Finding checkPort(const RdmaPort& port) {
  Finding finding{Level::ok, fmt::format("{}:{}", port.device, port.port), port.detail, ""};
  if (port.usable && port.problem.empty()) return finding;
  finding.level = Level::warn;
  finding.detail = port.problem.empty() ? "it cannot be used" : port.problem;
  if (!port.detail.empty()) finding.detail += " (" + port.detail + ")";
  finding.fix = port.fix.empty() ? "rdma link; ibv_devinfo -v -d " + port.device : port.fix;
  return finding;
}

// What lets NICs reach memory of that kind; nothing where its runtime has no way.
std::string fixFor(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cuda:
      return "sudo apt install nvidia-open  # the open kernel modules; or: sudo modprobe "
             "nvidia-peermem";
    case DeviceKind::hip:
      return "install ROCm 5.6 or newer, on Linux 5.12 or newer";
    default:
      return "";
  }
}

Finding checkMemory(const RdmaMemory& memory) {
  Finding finding{Level::ok, "RDMA and " + memory.device.toString(), memory.how, ""};
  if (memory.how.rfind("staged", 0) == 0) finding.fix = fixFor(memory.device.kind);
  if (!finding.fix.empty()) finding.level = Level::warn;
  return finding;
}

}  // namespace

bool hasRdmaDevice(const std::string& root) {
  return !namesIn(root + kDevices).empty();
}

std::vector<DeviceFile> tryDeviceFiles(const std::string& root) {
  std::vector<DeviceFile> files;
  for (const std::string& name : namesIn(root + kFiles)) {
    const std::string device = wordIn(fmt::format("{}{}/{}/ibdev", root, kFiles, name));
    if (device.empty()) continue;  // such as "abi_version"
    DeviceFile file{device, fmt::format("{}/dev/infiniband/{}", root, name)};
    if (!Fd(open(file.path.c_str(), O_RDWR | O_CLOEXEC))) file.error = errno;
    files.push_back(file);
  }
  return files;
}

std::vector<Finding> checkRdma(const std::string& root, const std::vector<DeviceFile>& files,
                               const RdmaReport& report) {
  if (!hasRdmaDevice(root))
    return {{Level::ok, "RDMA", "no device; not needed, ipc and tcp do without", ""}};
  std::vector<Finding> findings;
  if (files.empty()) {
    findings.push_back({Level::warn, "RDMA",
                        "there is a device, but the kernel offers programs no way to use it",
                        "sudo modprobe ib_uverbs"});
  }
  for (const auto& file : files) {
    // A device that opens needs no line, because its ports have theirs.
    if (file.error != 0) findings.push_back(checkFile(file));
  }
  findings.push_back(checkLibrary(report));
  for (const auto& port : report.ports) findings.push_back(checkPort(port));
  for (const auto& memory : report.memory) findings.push_back(checkMemory(memory));
  return findings;
}

}  // namespace hmc::tool
