#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/fd_exchange.h"
#include "fakes/link_options.h"
#include "fakes/must.h"
#include "memory/backends.h"
#include "transport/ipc/ipc.h"
#include "transport/ipc/remote.h"

namespace hmc::ipc {

using test::must;

inline constexpr std::chrono::seconds kPatience{30};

// Host memory that the library allocated.
class Allocation {
 public:
  explicit Allocation(size_t size) : region(must(hostBackend().allocate(0, size))) {}
  ~Allocation() { (void)hostBackend().release(region.ptr); }
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  const Region region;
};

// Two transports in one process, and a link between them.
class IpcPair {
 public:
  explicit IpcPair(IpcOptions options = {}, IpcOptions targetOptions = {})
      : origin(must(create(*originFds, options))), target(must(create(*targetFds, targetOptions))) {
    link = must(origin->openLink(test::linkOptions(true)));
    back = must(target->openLink(test::linkOptions(false)));
    EXPECT_TRUE(link->connect(back->address()).ok());
    EXPECT_TRUE(back->connect(link->address()).ok());
  }

  std::unique_ptr<RemoteMemory> import(const Registration& registration) {
    return must(link->importKey(registration.key(), kPatience, nullptr));
  }
  PathKind pathOf(const RemoteMemory& remote) { return static_cast<const IpcRemote&>(remote).kind; }

  // One operation, driven to its end.
  Status run(OpKind kind, const Registration& local, const RemoteMemory& remote, uint64_t offset,
             size_t size) {
    Completion completion(1);
    Op op{kind, local.region.ptr, &local, &remote, offset, size, &completion};
    Deadline deadline(kPatience);
    while (link->post({&op, 1}) == 0) origin->progress(deadline);
    while (!completion.done() && !deadline.passed()) origin->progress(deadline);
    if (!completion.done()) std::abort();  // it points to this stack frame
    return completion.status();
  }

  std::unique_ptr<FdExchange> originFds = must(FdExchange::create());
  std::unique_ptr<FdExchange> targetFds = must(FdExchange::create());
  std::unique_ptr<Transport> origin;
  std::unique_ptr<Transport> target;
  std::unique_ptr<Link> link;
  std::unique_ptr<Link> back;
};

inline Region hostRegion(void* ptr, size_t size) {
  return {ptr, size, Device{}};
}

inline constexpr IpcOptions kRingOnly{.allowMapping = false, .allowProcessVm = false};

}  // namespace hmc::ipc
