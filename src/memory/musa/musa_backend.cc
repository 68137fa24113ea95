#include "base/error.h"
#include "memory/musa/musa_api.h"
#include "memory/runtime_backend.h"

// Moore Threads GPUs.
namespace hmc::musa {

namespace {

constexpr const char* kFix =
    "it comes with the MUSA SDK: install that and the driver, put /usr/local/musa/lib in "
    "LD_LIBRARY_PATH, or give the container the GPUs (docker run --runtime mthreads --env "
    "MTHREADS_VISIBLE_DEVICES=all)";

MemGetAddressRange* findAddressRange(const DynamicLibrary& runtime) {
  // The runtime depends on the driver's library, so that its functions are found through it.
  for (const char* name : {"muMemGetAddressRange_v2", "muMemGetAddressRange"}) {
    auto found = runtime.symbol<MemGetAddressRange>(name);
    if (found.ok()) return *found;
  }
  return nullptr;
}

class MusaRuntime final : public CudaShapedRuntime {
 public:
  explicit MusaRuntime(CudaShapedApi api)
      : CudaShapedRuntime(std::move(api), DeviceKind::musa),
        addressRange_(findAddressRange(api_.library)) {}

  Result<Backend::Facts> facts() {
    int version = 0;
    HMC_SHAPED(api_, RuntimeGetVersion, &version);
    Backend::Facts facts{
        DeviceKind::musa, fmt::format("MUSA {}.{}", version / 10000, version / 100 % 100), {}};
    HMC_ASSIGN(facts.devices, devices("Moore Threads GPU"));
    return facts;
  }

  Status exportDmaBuf(const Region&, Share&) override {
    return error(Code::unsupported,
                 "MUSA exports no dma-buf: NICs do not reach device memory, stage it on the host");
  }

 protected:
  int deviceMemoryType() const override { return kMemoryTypeDevice; }
  unsigned ipcFlags() const override { return kIpcLazyPeerAccess; }
  Result<Region> rangeOf(const void* ptr, const Device& device) override {
    unsigned long long base = 0;
    size_t size = 0;
    if (!addressRange_ ||
        addressRange_(&base, &size, reinterpret_cast<unsigned long long>(ptr)) != 0) {
      return error(Code::unsupported,
                   "{} is MUSA device memory, and the driver does not say where its allocation "
                   "begins: let the Node allocate it",
                   ptr);
    }
    return Region{reinterpret_cast<void*>(base), size, device};  // NOLINT
  }

 private:
  MemGetAddressRange* const addressRange_;
};

}  // namespace

Result<Backend*> load() {
  HMC_ASSIGN(
      auto api,
      CudaShapedApi::load(
          "musa", {"libmusart.so", "libmusart.so.5", "libmusart.so.4", "libmusart.so.3"}, kFix));
  auto runtime = std::make_unique<MusaRuntime>(std::move(api));
  auto facts = runtime->facts();
  return makeBackend(std::move(facts), std::move(runtime), kFix);
}

}  // namespace hmc::musa
