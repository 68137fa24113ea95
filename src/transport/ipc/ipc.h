#pragma once

#include <memory>

#include "base/fd_exchange.h"
#include "hmc/result.h"
#include "transport/transport.h"

namespace hmc::ipc {

// Which paths to the peer's memory may be used; the staging ring always may. Both ends have a say:
// memory registered without mapping is never offered for it.
struct IpcOptions {
  bool allowMapping = true;
  bool allowProcessVm = true;
};

// Same-host transport. How a peer's memory is reached is decided once, when its key is imported:
//
//  mapped      memory whose backend can share it (our host allocations, accelerators' handles) is
//              mapped here; a transfer is a copy, finished inside post()
//  process_vm  host memory that the user allocated elsewhere; the kernel copies, inside post()
//  ring        host memory that neither reaches: pieces pass through shared memory and the peer's
//              thread "hmc-ipc" copies them into place. It runs once memory is registered that may
//              need it
//
// `fds` must outlive the transport.
Result<std::unique_ptr<Transport>> create(FdExchange& fds, IpcOptions options = {});

}  // namespace hmc::ipc
