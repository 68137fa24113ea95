#include "base/error.h"
#include "memory/hip/hip_api.h"
#include "memory/runtime_backend.h"

// AMD GPUs through ROCm, and Hygon DCUs through DTK.
namespace hmc::hip {

namespace {

// One runtime by two vendors. A machine may have the libraries of both.
struct Vendor {
  std::vector<std::string> libraries;
  const char* fix;
};
const Vendor kAmd{
    {"libamdhip64.so.6", "libamdhip64.so.7", "libamdhip64.so.5", "libamdhip64.so"},
    "AMD's comes with ROCm: install that, put its lib folder in LD_LIBRARY_PATH, or give the "
    "container the GPUs (docker run --device /dev/kfd --device /dev/dri --group-add video)"};
const Vendor kHygon{
    {"libgalaxyhip.so.5", "libgalaxyhip.so"},
    "Hygon's comes with DTK: install that, put its lib folder in LD_LIBRARY_PATH, or give the "
    "container the DCUs (docker run --device /dev/kfd --device /dev/mkfd --device /dev/dri)"};

class HipRuntime final : public CudaShapedRuntime {
 public:
  static Result<std::unique_ptr<HipRuntime>> create(const Vendor& vendor) {
    HMC_ASSIGN(auto api, CudaShapedApi::load("hip", vendor.libraries, vendor.fix));
    auto made = std::make_unique<HipRuntime>(std::move(api));
    HMC_TRY(made->complete());
    return made;
  }
  explicit HipRuntime(CudaShapedApi api) : CudaShapedRuntime(std::move(api), DeviceKind::hip) {}

  Result<Backend::Facts> facts() {
    Backend::Facts facts{DeviceKind::hip,
                         fmt::format("{} {}.{}", isDtk() ? "DTK, HIP" : "ROCm, HIP",
                                     version_ / 10000000, version_ / 100000 % 100),
                         {}};
    HMC_ASSIGN(facts.devices, devices("GPU"));
    for (int index = 0; index < facts.deviceCount(); ++index) {
      Backend::DeviceFacts& device = facts.devices[static_cast<size_t>(index)];
      char name[256] = "";
      if (hipDeviceGetName(name, sizeof(name), index) == 0 && name[0] != '\0') device.name = name;
      HipUuid uuid{};
      DeviceUuid found;
      if (hipDeviceGetUuid(&uuid, index) != 0) continue;
      std::copy(std::begin(uuid.bytes), std::end(uuid.bytes), found.bytes.begin());
      // Old GPUs have none.
      if (found != DeviceUuid{}) device.uuid = found;
    }
    return facts;
  }

  Status exportDmaBuf(const Region& region, Share& share) override {
    if (!exportDmaBuf_) {
      return error(Code::unsupported,
                   "{} exports no dma-buf, so no NIC reaches device memory: {} needs ROCm 5.6",
                   isDtk() ? "DTK" : "this ROCm", "hsa_amd_portable_export_dmabuf()");
    }
    int fd = -1;
    const int result = exportDmaBuf_(region.ptr, region.size, &fd, &share.offset);
    if (result != kHsaSuccess || fd < 0) {
      return error(Code::unsupported,
                   "no dma-buf of {} bytes at {}: HSA status {}; it needs Linux 5.12 and a kernel "
                   "with CONFIG_DMABUF_MOVE_NOTIFY and CONFIG_PCI_P2PDMA",
                   region.size, region.ptr, result);
    }
    share.fds.emplace_back(fd);
    return Status();
  }

 protected:
  int deviceMemoryType() const override {
    return version_ < kRocm6 ? kMemoryTypeDevice5 : kMemoryTypeDevice6;
  }
  unsigned ipcFlags() const override { return kIpcLazyPeerAccess; }
  Result<Region> rangeOf(const void* ptr, const Device& device) override {
    Region region{nullptr, 0, device};
    HMC_TRY(api_.check(hipMemGetAddressRange(&region.ptr, &region.size, const_cast<void*>(ptr)),
                       "MemGetAddressRange"));
    return region;
  }

 private:
  bool isDtk() const { return api_.library.path().find("galaxyhip") != std::string::npos; }

  // Loads what only this vendor has.
  Status complete() {
#define HMC_ROW(name, arguments) HMC_TRY(lookUp(api_.library, #name, name));
    HMC_HIP_FUNCTIONS(HMC_ROW)
#undef HMC_ROW
    HMC_SHAPED(api_, RuntimeGetVersion, &version_);
    if (isDtk()) return Status();
    auto hsa = DynamicLibrary::open("libhsa-runtime64.so.1");
    if (!hsa.ok()) return Status();
    auto found = hsa->symbol<ExportDmaBuf>("hsa_amd_portable_export_dmabuf");
    if (found.ok()) exportDmaBuf_ = *found;
    hsa->stay();
    return Status();
  }

#define HMC_ROW(name, arguments) int(*name) arguments = nullptr;
  HMC_HIP_FUNCTIONS(HMC_ROW)
#undef HMC_ROW
  ExportDmaBuf* exportDmaBuf_ = nullptr;
  int version_ = 0;
};

Result<Backend*> loadFrom(const Vendor& vendor) {
  HMC_ASSIGN(auto runtime, HipRuntime::create(vendor));
  auto facts = runtime->facts();
  return makeBackend(std::move(facts), std::move(runtime), vendor.fix);
}

}  // namespace

// A library that finds no device leaves the other one its turn. What the process uses already goes
// first.
Result<Backend*> load() {
  const bool hygonIsInUse = isAnyLoaded(kHygon.libraries) && !isAnyLoaded(kAmd.libraries);
  const Vendor& first = hygonIsInUse ? kHygon : kAmd;
  const Vendor& second = hygonIsInUse ? kAmd : kHygon;
  auto found = loadFrom(first);
  if (found.ok()) return found;
  auto other = loadFrom(second);
  if (other.ok()) return other;
  // Who is not installed has nothing to tell when the other one is.
  const bool firstIsHere = isAnyLoaded(first.libraries);
  const bool secondIsHere = isAnyLoaded(second.libraries);
  if (firstIsHere && !secondIsHere) return found;
  if (secondIsHere && !firstIsHere) return other;
  return error(found.status().code(), "{}; {}", found.status().message(), other.status().message());
}

}  // namespace hmc::hip
