#include <dlfcn.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/core.h>

#include "doctor/checks.h"
#include "doctor/host_files.h"
#include "system_call.h"

namespace hmc::tool {

namespace {

// What each kind of accelerator looks like on a host, and what helps where a part of it is missing.
struct AcceleratorKind {
  DeviceKind kind;
  std::vector<std::string> pciVendors;
  std::vector<std::string> nodes;  // beginnings of names in /dev
  std::vector<std::string> libraries;
  const char* hiding;  // the variable that picks devices
  const char* driverFix;
  const char* libraryFix;
  const char* groupFix;
  const char* containerFix;
};

const AcceleratorKind kAccelerators[] = {
    {DeviceKind::cuda,
     {"0x10de"},
     {"nvidiactl", "nvidia0"},
     {"libcuda.so.1"},
     "CUDA_VISIBLE_DEVICES",
     "sudo apt install nvidia-open  # or your distribution's package of NVIDIA's driver; reboot",
     "sudo apt install libcuda1  # of the driver's version; or put the folder of libcuda.so.1 in "
     "LD_LIBRARY_PATH",
     "sudo usermod -aG video,render $USER  # and log in again",
     "docker run --gpus all ...  # needs nvidia-container-toolkit"},
    {DeviceKind::hip,
     {"0x1002", "0x1d94"},
     {"kfd"},
     {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libgalaxyhip.so.5"},
     "HIP_VISIBLE_DEVICES",
     "sudo modprobe amdgpu  # AMD: apt install amdgpu-dkms; Hygon: the driver of DTK",
     "install ROCm (AMD) or DTK (Hygon), then: export LD_LIBRARY_PATH=/opt/rocm/lib",
     "sudo usermod -aG render,video $USER  # and log in again",
     "docker run --device=/dev/kfd --device=/dev/dri --group-add video --group-add render ...  # "
     "Hygon: and --device=/dev/mkfd"},
    {DeviceKind::cnrt,
     {"0xcabc"},
     {"cambricon_ctl", "cambricon_dev"},
     {"libcnrt.so"},
     "MLU_VISIBLE_DEVICES",
     "install Cambricon's driver, then: cnmon",
     "install CNToolkit, then: export LD_LIBRARY_PATH=/usr/local/neuware/lib64",
     "sudo usermod -aG video $USER  # or the group of /dev/cambricon_ctl; and log in again",
     "docker run --device=/dev/cambricon_dev0 --device=/dev/cambricon_ctl ..."},
    {DeviceKind::acl,
     {"0x19e5"},
     {"davinci_manager", "davinci0"},
     {"libascendcl.so"},
     "ASCEND_RT_VISIBLE_DEVICES",
     "install Ascend's driver and firmware, then: npu-smi info",
     "install CANN, then: source /usr/local/Ascend/ascend-toolkit/set_env.sh",
     "sudo usermod -aG HwHiAiUser $USER  # and log in again",
     "docker run --device=/dev/davinci0 --device=/dev/davinci_manager --device=/dev/devmm_svm "
     "--device=/dev/hisi_hdc -v /usr/local/Ascend/driver:/usr/local/Ascend/driver ..."},
    {DeviceKind::musa,
     {"0x1ed5"},
     {"mtgpu"},
     {"libmusart.so", "libmusart.so.5", "libmusart.so.4", "libmusart.so.3"},
     "MUSA_VISIBLE_DEVICES",
     "install Moore Threads' driver, then: mthreads-gmi",
     "install the MUSA SDK, then: export LD_LIBRARY_PATH=/usr/local/musa/lib",
     "sudo usermod -aG video,render $USER  # and log in again",
     "docker run --runtime=mthreads --env MTHREADS_VISIBLE_DEVICES=all ..."},
};

// Vendors make network cards, bridges and sound, too. 0x03: display, 0x12: processing accelerator,
// 0x0b40: co-processor.
bool isAcceleratorClass(const std::string& pciClass) {
  return pciClass.rfind("0x03", 0) == 0 || pciClass.rfind("0x12", 0) == 0 ||
         pciClass.rfind("0x0b40", 0) == 0;
}

bool isOnPci(const std::string& root, const std::vector<std::string>& vendors) {
  const std::string folder = root + "/sys/bus/pci/devices/";
  const auto devices = namesIn(folder);
  return std::any_of(devices.begin(), devices.end(), [&](const std::string& device) {
    const std::string vendor = wordIn(folder + device + "/vendor");
    return std::find(vendors.begin(), vendors.end(), vendor) != vendors.end() &&
           isAcceleratorClass(wordIn(folder + device + "/class"));
  });
}

std::vector<DeviceFile> tryNodes(const std::string& root, const AcceleratorKind& kind) {
  std::vector<DeviceFile> files;
  for (const std::string& name : namesIn(root + "/dev")) {
    const bool ours =
        std::any_of(kind.nodes.begin(), kind.nodes.end(),
                    [&](const std::string& start) { return name.rfind(start, 0) == 0; });
    if (!ours) continue;
    DeviceFile file{deviceKindName(kind.kind), root + "/dev/" + name};
    if (!Fd(open(file.path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK))) file.error = errno;
    files.push_back(file);
  }
  return files;
}

bool isInContainer(const std::string& root) {
  return std::filesystem::exists(root + "/.dockerenv") ||
         std::filesystem::exists(root + "/var/run/secrets/kubernetes.io") ||
         std::filesystem::exists(root + "/run/.containerenv");
}

bool isLibraryLoaded(const AcceleratorKind& kind) {
  return std::any_of(kind.libraries.begin(), kind.libraries.end(), [](const std::string& name) {
    void* found = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (found) dlclose(found);
    return found != nullptr;
  });
}

// The runtime's own words. The advice that follows a semicolon is for all cases, ours for this one.
std::string problemIn(const std::string& sentence) {
  return sentence.substr(0, sentence.find("; "));
}

// What keeps the devices of a kind from being used, with the fix.
Finding explainMissing(const AcceleratorKind& kind, const AcceleratorSigns& signs,
                       const std::string& why) {
  Finding finding{Level::warn, deviceKindName(kind.kind), why, ""};
  const auto closed = std::find_if(signs.nodes.begin(), signs.nodes.end(),
                                   [](const DeviceFile& file) { return file.error != 0; });
  if (signs.nodes.empty()) {
    const bool given = signs.onPci && !signs.inContainer;
    finding.detail = fmt::format("{}, but there is no /dev/{}: {}",
                                 signs.onPci ? "there is a device" : "the library is installed",
                                 kind.nodes.front(), why);
    finding.fix = given ? kind.driverFix : kind.containerFix;
  } else if (closed != signs.nodes.end()) {
    finding.detail =
        fmt::format("{} cannot be opened: {}", closed->path, std::strerror(closed->error));
    const bool forbidden = closed->error == EACCES;
    finding.fix = forbidden           ? kind.groupFix
                  : signs.inContainer ? kind.containerFix
                                      : kind.driverFix;
  } else if (!signs.library) {
    finding.detail = fmt::format("there is {}, but no library: {}", signs.nodes.front().path, why);
    finding.fix = kind.libraryFix;
  } else if (!signs.hiddenBy.empty()) {
    finding.detail = fmt::format("{} hides the devices: {}", signs.hiddenBy, why);
    finding.fix = std::string("unset ") + kind.hiding;
  } else {
    finding.fix = kind.driverFix;
  }
  return finding;
}

}  // namespace

std::vector<AcceleratorSigns> findAccelerators(const std::string& root) {
  std::vector<AcceleratorSigns> found;
  for (const AcceleratorKind& kind : kAccelerators) {
    AcceleratorSigns signs{kind.kind,
                           isOnPci(root, kind.pciVendors),
                           tryNodes(root, kind),
                           isLibraryLoaded(kind),
                           "",
                           isInContainer(root)};
    if (const char* chosen = std::getenv(kind.hiding))
      signs.hiddenBy = fmt::format("{}={}", kind.hiding, chosen);
    found.push_back(signs);
  }
  return found;
}

std::vector<Finding> checkAccelerators(const std::vector<AcceleratorSigns>& found,
                                       const std::vector<MemoryReport>& reports) {
  std::vector<Finding> findings;
  for (const AcceleratorSigns& signs : found) {
    const auto* kind = std::find_if(std::begin(kAccelerators), std::end(kAccelerators),
                                    [&](const auto& one) { return one.kind == signs.kind; });
    const auto report = std::find_if(reports.begin(), reports.end(),
                                     [&](const auto& one) { return one.kind == signs.kind; });
    if (kind == std::end(kAccelerators) || report == reports.end()) continue;
    if (report->devices > 0) {
      findings.push_back({Level::ok, deviceKindName(signs.kind),
                          fmt::format("{} device{}, {}", report->devices,
                                      report->devices == 1 ? "" : "s", report->detail),
                          ""});
    } else if (signs.onPci || !signs.nodes.empty() || signs.library) {
      findings.push_back(explainMissing(*kind, signs, problemIn(report->detail)));
    }
  }
  return findings;
}

}  // namespace hmc::tool
