#include "transport/ucx/ucx.h"

#include <condition_variable>
#include <mutex>

#include "base/error.h"
#include "transport/exports.h"
#include "transport/ucx/lanes.h"
#include "transport/ucx/link.h"

namespace hmc::ucx {

namespace {

// Memory of ours that peers reach by messages, and by hardware where UCX can register it.
class UcxRegistration final : public Registration {
 public:
  // Must not outlive `context` and `exports`.
  UcxRegistration(Context& context, Exports& exports, const Region& what, Access how)
      : Registration(what, how), context_(context), exports_(exports), id_(exports.add(what, how)) {
    Key made{id_, reinterpret_cast<uint64_t>(what.ptr), what.size, how, "", ""};
    // UCX 1.13 lets hardware write to whatever it registers, so messages serve read-only memory:
    // they are checked.
    if (how == Access::readWrite && context.hasHardware()) {
      auto packed = openToHardware();
      (packed.ok() ? made.hardware : made.hindrance) =
          packed.ok() ? *std::move(packed) : packed.status().message();
    }
    key_ = made.encode();
  }
  ~UcxRegistration() override {
    exports_.remove(id_);
    if (handle_) context_.api().ucp_mem_unmap(context_.handle(), handle_);
  }

  const std::string& key() const override { return key_; }

 private:
  Result<std::string> openToHardware();

  Context& context_;
  Exports& exports_;
  const uint64_t id_;
  ucp_mem_h handle_ = nullptr;  // none where hardware does not reach it
  std::string key_;
};

// Answers UCX's key.
Result<std::string> UcxRegistration::openToHardware() {
  const Api& api = context_.api();
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                      UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
  params.address = region.ptr;
  params.length = region.size;
  params.memory_type = UCS_MEMORY_TYPE_HOST;
  ucs_status_t status = api.ucp_mem_map(context_.handle(), &params, &handle_);
  if (status != UCS_OK) {
    handle_ = nullptr;
    return error(Code::failed,
                 "the peer's UCX {} cannot register {} bytes with its RDMA device: {}; raise the "
                 "peer's limit of locked memory (ulimit -l)",
                 api.version, region.size, api.text(status));
  }
  void* bytes = nullptr;
  size_t size = 0;
  status = api.ucp_rkey_pack(context_.handle(), handle_, &bytes, &size);
  if (status != UCS_OK) {
    return error(Code::failed, "the peer's UCX {} has no key for {} bytes: {}", api.version,
                 region.size, api.text(status));
  }
  std::string key(static_cast<const char*>(bytes), size);
  api.ucp_rkey_buffer_release(bytes);
  return key;
}

// What there is once UCX is loaded.
struct Running {
  std::unique_ptr<Context> serving;
  std::unique_ptr<Context> asking;
  Exports exports;
  Draining draining;
  std::unique_ptr<Progress> progress;
  std::unique_ptr<Service> service;
};

Result<std::unique_ptr<Running>> start(const std::string& library) {
  // Another part of the process may have loaded one meanwhile.
  const std::string loaded = loadedLibrary();
  HMC_ASSIGN(auto api, Api::load(loaded.empty() ? library : loaded));
  auto running = std::make_unique<Running>();
  HMC_ASSIGN(running->serving, Context::create(api, Context::Purpose::serve));
  HMC_ASSIGN(running->asking, Context::create(std::move(api), Context::Purpose::ask));
  HMC_ASSIGN(running->progress, Progress::create(*running->asking, running->draining));
  HMC_ASSIGN(running->service,
             Service::create(*running->serving, running->exports, running->draining));
  return running;
}

class UcxTransport final : public Transport {
 public:
  explicit UcxTransport(std::string library)
      : Transport({.name = "ucx",
                   .domain = "ucx",
                   .local = {DeviceKind::cpu},
                   .largest = kLargest,
                   .paths = pathsOfThisMachine(),
                   .onDemand = true}),
        library_(std::move(library)) {}

  Result<std::unique_ptr<Registration>> registerRegion(const Region& region, Access access,
                                                       Exposure) override {
    // UCX may not know it, and where it does, an acknowledged put need not be visible in it.
    if (!region.device.isHost()) {
      return error(Code::unsupported, "ucx reaches host memory only, not {} memory",
                   region.device.toString());
    }
    if (region.ptr == nullptr || region.size == 0) {
      return error(Code::invalidArgument, "a region of {} bytes at {} cannot be registered",
                   region.size, region.ptr);
    }
    HMC_ASSIGN(Running * running, started());
    return std::unique_ptr<Registration>(
        new UcxRegistration(*running->serving, running->exports, region, access));
  }
  Result<std::unique_ptr<Link>> openLink(const LinkOptions& options) override {
    HMC_ASSIGN(Running * running, started());
    return UcxLink::create(*running->progress, *running->service, counters(), options);
  }
  bool progress(Deadline until) override {
    if (Running* running = ready_.load(std::memory_order_acquire)) {
      return running->progress->run(until);
    }
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, until.at(), [&] { return running_ != nullptr || wanted_; });
    wanted_ = false;
    return false;
  }
  void wake() override {
    if (Running* running = ready_.load(std::memory_order_acquire)) return running->progress->wake();
    std::lock_guard lock(mutex_);
    wanted_ = true;
    changed_.notify_all();
  }

 private:
  Result<Running*> started() {
    std::lock_guard lock(mutex_);
    if (!running_) {
      HMC_ASSIGN(running_, start(library_));
      ready_.store(running_.get(), std::memory_order_release);
      changed_.notify_all();
    }
    return running_.get();
  }

  const std::string library_;
  std::atomic<Running*> ready_{nullptr};
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::unique_ptr<Running> running_;
  bool wanted_ = false;  // progress() shall return
};

}  // namespace

Result<std::unique_ptr<Transport>> create(const UcxOptions& options) {
  std::string library = options.library.empty() ? loadedLibrary() : options.library;
  if (library.empty()) {
    HMC_ASSIGN(library, findLibrary(Search::ofThisProcess()));
  }
  return std::unique_ptr<Transport>(new UcxTransport(std::move(library)));
}

}  // namespace hmc::ucx
