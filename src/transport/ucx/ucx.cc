#include "transport/ucx/ucx.h"

#include <condition_variable>
#include <mutex>

#include "base/error.h"
#include "transport/ucx/lanes.h"
#include "transport/ucx/library.h"
#include "transport/ucx/link.h"
#include "transport/ucx/registration.h"

namespace hmc::ucx {

namespace {

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

  Result<std::unique_ptr<Registration>> registerRegion(const Region& region,
                                                       Access access) override {
    // UCX may not know it, and where it does, an acknowledged put need not be visible in it.
    if (!region.device.isHost()) {
      return error(Code::unsupported, "ucx reaches host memory only, not {} memory",
                   region.device.toString());
    }
    HMC_ASSIGN(Running * running, started());
    return UcxRegistration::create(*running->serving, running->exports, region, access);
  }
  Result<std::unique_ptr<Link>> openLink(const LinkOptions& options) override {
    HMC_ASSIGN(Running * running, started());
    return UcxLink::create(*running->progress, *running->service, running->serving->api().version,
                           counters(), options);
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
