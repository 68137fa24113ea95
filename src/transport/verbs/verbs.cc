#include "transport/verbs/verbs.h"

#include "base/codec.h"
#include "base/error.h"
#include "base/random.h"
#include "transport/verbs/link.h"

namespace hmc::verbs {

namespace {

constexpr int kMostChannels = 16;

// Two ports of one domain can reach each other, as far as their kind goes.
std::string domainOf(const Port& port) {
  if (port.ethernet) return "roce";
  return "infiniband:" +
         hex({reinterpret_cast<const char*>(port.gid.bytes.data()), 8});  // subnet prefix
}

// What such a port typically does; its rate is its own word.
Transport::Path typical(const Nics& nics) {
  double gbits = 0;
  for (const auto& nic : nics) gbits += nic->port().gbits;
  const bool soft = nics[0]->port().soft;
  return {wayOf(nics), soft ? 30000.0 : 3000.0, soft ? 0.5 : gbits / 8 * 0.9};
}

Transport::Facts factsOf(const Nics& nics) {
  return {"verbs",
          domainOf(nics[0]->port()),
          {std::begin(kDeviceKinds), std::end(kDeviceKinds)},
          largestPiece(nics),
          {typical(nics)}};
}

class VerbsTransport final : public Transport {
 public:
  VerbsTransport(Facts facts, const VerbsOptions& options, std::unique_ptr<Nics> nics,
                 std::unique_ptr<Progress> progress, std::unique_ptr<Service> service)
      : Transport(std::move(facts)),
        options_(options),
        nics_(std::move(nics)),
        memory_(*nics_),
        progress_(std::move(progress)),
        service_(std::move(service)) {}

  Result<std::unique_ptr<Registration>> registerRegion(const Region& region,
                                                       Access access) override {
    return memory_.add(region, access);
  }
  Result<std::unique_ptr<Link>> openLink(const LinkOptions& options) override {
    return VerbsLink::create(*nics_, options_.channels, *service_, *progress_, options);
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

// The best ones, as many as there are channels to use them, of one kind.
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

}  // namespace

Result<std::unique_ptr<Transport>> create(const VerbsOptions& options) {
  if (options.channels < 1 || options.channels > kMostChannels) {
    return error(Code::invalidArgument, "{} RDMA channels: 1 to {} are possible", options.channels,
                 kMostChannels);
  }
  HMC_ASSIGN(auto library, Library::load());
  HMC_ASSIGN(auto nics, openNics(library, options.channels));
  HMC_ASSIGN(auto progress, Progress::create(*nics));
  HMC_ASSIGN(auto service, Service::create(*nics));
  Transport::Facts facts = factsOf(*nics);
  return std::unique_ptr<Transport>(new VerbsTransport(std::move(facts), options, std::move(nics),
                                                       std::move(progress), std::move(service)));
}

}  // namespace hmc::verbs
