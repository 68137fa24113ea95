#include "transport/verbs/verbs.h"

#include "base/codec.h"
#include "base/error.h"
#include "base/random.h"
#include "memory/backends.h"
#include "transport/rdma_report.h"
#include "transport/verbs/link.h"

namespace hmc::verbs {

namespace {

constexpr int kMostChannels = 16;

// Ports of different domains cannot reach each other.
std::string domainOf(const Port& port) {
  if (port.ethernet) return "roce";
  return "infiniband:" +
         hex({reinterpret_cast<const char*>(port.gid.bytes.data()), 8});  // subnet prefix
}

Transport::Facts factsOf(const Nics& nics) {
  // What such ports typically do. Their rate is what they report.
  double gbits = 0;
  for (const auto& nic : nics) gbits += nic->port().gbits;
  const bool soft = nics[0]->port().soft;
  return {"verbs",
          domainOf(nics[0]->port()),
          {std::begin(kDeviceKinds), std::end(kDeviceKinds)},
          largestPiece(nics),
          {{pathName(nics), soft ? 30000.0 : 3000.0, soft ? 0.5 : gbits / 8 * 0.9}}};
}

class VerbsTransport final : public Transport {
 public:
  VerbsTransport(const VerbsOptions& options, std::unique_ptr<Nics> nics,
                 std::unique_ptr<Progress> progress, std::unique_ptr<Service> service)
      : Transport(factsOf(*nics)),
        options_(options),
        nics_(std::move(nics)),
        memory_(*nics_),
        progress_(std::move(progress)),
        service_(std::move(service)) {}

  Result<std::unique_ptr<Registration>> registerRegion(const Region& region, Access access,
                                                       Exposure exposure) override {
    return memory_.add(region, access, exposure);
  }
  Result<std::unique_ptr<Link>> openLink(const LinkOptions& options) override {
    return VerbsLink::create(*nics_, options_.channels, *service_, *progress_, counters(), options);
  }
  bool progress(Deadline until) override { return progress_->run(until); }
  void wake() override { progress_->wake(); }

 private:
  const VerbsOptions options_;
  const std::unique_ptr<Nics> nics_;
  MemoryTable memory_;
  const std::unique_ptr<Progress> progress_;
  const std::unique_ptr<Service> service_;
};

Status explainNone(const std::vector<Port>& ports) {
  if (ports.empty()) return explainNoDevice();
  std::string reasons;
  for (const Port& port : ports) {
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", port.name(), port.problem);
    if (!port.fix.empty()) reasons += " (" + port.fix + ")";
  }
  return error(Code::unsupported, "no RDMA port can be used: {}", reasons);
}

// The best ports of one domain, no more than there are channels.
Result<std::unique_ptr<Nics>> openNics(const std::shared_ptr<const Library>& library,
                                       int channels) {
  HMC_ASSIGN(PortSettings settings, PortSettings::fromEnvironment());
  HMC_ASSIGN(std::vector<Port> ports, findPorts(*library, settings));
  auto nics = std::make_unique<Nics>();
  for (const Port& port : ports) {
    if (!port.usable || nics->size() == static_cast<size_t>(channels)) continue;
    if (!nics->empty() && domainOf(port) != domainOf(nics->front()->port())) continue;
    HMC_ASSIGN(auto nic, Nic::open(library, port));
    nics->push_back(std::move(nic));
  }
  if (nics->empty()) return explainNone(ports);
  return nics;
}

std::vector<MemoryWay> tryMemory(const std::shared_ptr<const Library>& library, const Port& port) {
  std::vector<MemoryWay> found;
  auto nic = Nic::open(library, port);
  if (!nic.ok()) return found;
  Nics nics;
  nics.push_back(*std::move(nic));
  MemoryTable table(nics);
  for (Backend* backend : accelerators()) {
    for (int index = 0; index < backend->facts().deviceCount(); ++index) {
      const Device device{backend->facts().kind, index};
      auto how = table.tryDevice(device);
      found.push_back(
          {device, how.ok() ? *how : "staged through the host: " + how.status().message()});
    }
  }
  return found;
}

}  // namespace

Result<std::unique_ptr<Transport>> create(const VerbsOptions& options) {
  if (options.channels < 1 || options.channels > kMostChannels) {
    return error(Code::invalidArgument, "{} RDMA channels: choose 1 to {}", options.channels,
                 kMostChannels);
  }
  HMC_ASSIGN(auto library, Library::load());
  HMC_ASSIGN(auto nics, openNics(library, options.channels));
  HMC_ASSIGN(auto progress, Progress::create(*nics));
  HMC_ASSIGN(auto service, Service::create(*nics));
  return std::unique_ptr<Transport>(
      new VerbsTransport(options, std::move(nics), std::move(progress), std::move(service)));
}

Report report() {
  Report report;
  auto library = Library::load();
  if (!library.ok()) {
    report.problem = library.status().message();
    report.fix = "apt install libibverbs1 ibverbs-providers";
    return report;
  }
  report.library = (*library)->handle.path();
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
