#include "transport/rdma_report.h"

#include "memory/backends.h"
#include "transport/verbs/memory.h"

namespace hmc::verbs {

namespace {

std::vector<MemoryWay> tryMemory(const std::shared_ptr<const Library>& library, const Port& port) {
  std::vector<MemoryWay> ways;
  auto nic = Nic::open(library, port);
  if (!nic.ok()) return ways;
  Nics nics;
  nics.push_back(*std::move(nic));
  MemoryTable table(nics);
  for (Backend* backend : accelerators()) {
    for (int index = 0; index < backend->facts().deviceCount(); ++index) {
      const Device device{backend->facts().kind, index};
      auto how = table.tryDevice(device);
      ways.push_back(
          {device, how.ok() ? *how : "staged through the host: " + how.status().message()});
    }
  }
  return ways;
}

}  // namespace

Report report() {
  Report report;
  auto library = Library::load();
  if (!library.ok()) {
    report.problem = library.status().message();
    report.fix = "apt install libibverbs1 ibverbs-providers";
    return report;
  }
  report.library = (*library)->path();
  auto settings = PortSettings::fromEnvironment();
  auto ports = settings.ok() ? findPorts(**library, *settings) : settings.status();
  if (!ports.ok() || ports->empty()) {
    report.problem = (ports.ok() ? explainNoDevice() : ports.status()).message();
    return report;
  }
  for (const Port& port : *ports) {
    report.ports.push_back({port.device, port.number, port.usable,
                            port.usable ? port.describe() : "", port.problem, port.fix});
  }
  if (ports->front().usable) report.memory = tryMemory(*library, ports->front());
  return report;
}

}  // namespace hmc::verbs
