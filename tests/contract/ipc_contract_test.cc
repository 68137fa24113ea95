#include <cstdlib>

#include "base/fd_exchange.h"
#include "contract/transport_contract.h"
#include "transport/ipc/ipc.h"

namespace hmc::contract {

namespace {

Result<std::unique_ptr<Transport>> make(ipc::IpcOptions options) {
  // One for the process, as a Node would have it. Never destroyed: it outlives every transport.
  static FdExchange* exchange = (*FdExchange::create()).release();
  return ipc::create(*exchange, options);
}

}  // namespace

std::vector<Candidate> candidates() {
  // For this process and, inherited, for the target process: the device memory of these tests.
  setenv("HMC_MEMORY_PLUGIN", HMC_FAKE_PLUGIN, 1);
  Candidate direct;  // host and device memory mapped, the heap through the kernel
  direct.name = "ipc";
  direct.make = [] { return make({}); };
  direct.memories = {heapMemory(), hostMemory(), deviceMemory({DeviceKind::cuda, 1})};
  direct.unregisterStops = false;
  direct.reachesStoppedTarget = true;

  Candidate ring;
  ring.name = "ipcRing";
  ring.make = [] { return make({.allowMapping = false, .allowProcessVm = false}); };
  ring.memories = {heapMemory(), hostMemory()};

  return {direct, ring};
}

}  // namespace hmc::contract
