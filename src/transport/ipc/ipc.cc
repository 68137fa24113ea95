#include "transport/ipc/ipc.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"
#include "memory/backends.h"
#include "transport/ipc/key.h"
#include "transport/ipc/link.h"
#include "transport/ipc/registration.h"
#include "transport/ipc/shared.h"

namespace hmc::ipc {

namespace {

// The engine cuts larger transfers, and looks at deadlines in between.
constexpr size_t kLargest = size_t{64} << 20;
// A device copies a whole list with one launch.
constexpr size_t kBatch = 1024;
constexpr std::chrono::microseconds kSpin{20};
constexpr std::chrono::milliseconds kNap{1};

// Processes with the same domain can use our abstract sockets: same kernel, same network namespace,
// same user. A peer can claim any: it is believed when a Neighbour has answered.
Result<std::string> domain() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  if (!(file >> boot)) {
    return error(Code::unsupported, "/proc/sys/kernel/random/boot_id cannot be read");
  }
  struct stat info {};
  if (stat("/proc/self/ns/net", &info) != 0) return errnoStatus("look at /proc/self/ns/net");
  return fmt::format("ipc:{}:{}:{}", boot, info.st_ino, geteuid());
}

class IpcTransport final : public Transport {
 public:
  IpcTransport(FdExchange& fds, IpcOptions options, std::string domain,
               SharedBlock<ServicePage> page, Fd pageFd)
      : Transport({"ipc",
                   std::move(domain),
                   {std::begin(kDeviceKinds), std::end(kDeviceKinds)},
                   kLargest,
                   {{describe(ipc::PathKind::mappedHost), 20, 10},
                    {describe(ipc::PathKind::processVm), 700, 8},
                    {describe(ipc::PathKind::ring), 3000, 4}},
                   /*onDemand=*/false,
                   kBatch}),
        shared_(fds, options, std::move(page), std::move(pageFd)) {}

  Result<std::unique_ptr<Registration>> registerRegion(const Region& region, Access access,
                                                       Exposure exposure) override {
    if (!region.ptr || region.size == 0 ||
        !fits(reinterpret_cast<uintptr_t>(region.ptr), region.size, UINTPTR_MAX)) {
      return error(Code::invalidArgument, "{} bytes at {} are not memory that can be registered",
                   region.size, region.ptr);
    }
    HMC_ASSIGN(Backend * backend, findBackend(region.device));
    return std::unique_ptr<Registration>(
        std::make_unique<IpcRegistration>(shared_, *backend, region, access, exposure));
  }

  Result<std::unique_ptr<Link>> openLink(const LinkOptions& options) override {
    return std::unique_ptr<Link>(std::make_unique<IpcLink>(shared_, options));
  }

  bool progress(Deadline until) override {
    if (!shared_.hasRings()) return progressWithoutRings(earlier(until, kSpin));
    Doorbell& doorbell = shared_.page->progress;
    Deadline spin = earlier(until, kSpin);
    uint32_t seen = 0;
    do {
      seen = doorbell.count.load();
      if (shared_.pump()) return true;
      if (wanted_.load() && wanted_.exchange(false)) return false;
    } while (!spin.passed());
    // Devices ring no doorbell.
    doorbell.sleep(seen, earlier(until, shared_.deviceCopies.idle() ? kNap : kSpin));
    return shared_.pump();
  }
  void wake() override {
    wanted_.store(true);
    shared_.page->progress.ring();
  }

 private:
  // What devices do not copy finishes inside post(), perhaps in another thread, which wakes nobody.
  bool progressWithoutRings(Deadline until) {
    while (!shared_.deviceCopies.idle() && !until.passed()) {
      if (shared_.deviceCopies.poll()) return true;
    }
    futexWait(never_, 0, until);
    return false;
  }

  Shared shared_;
  std::atomic<uint32_t> never_{0};
  std::atomic<bool> wanted_{false};  // progress() shall return
};

}  // namespace

Result<std::unique_ptr<Transport>> create(FdExchange& fds, IpcOptions options) {
  HMC_ASSIGN(std::string where, domain());
  HMC_ASSIGN(auto page, SharedBlock<ServicePage>::create());
  HMC_ASSIGN(Fd pageFd, page.share());
  return std::unique_ptr<Transport>(std::make_unique<IpcTransport>(
      fds, options, std::move(where), std::move(page), std::move(pageFd)));
}

}  // namespace hmc::ipc
