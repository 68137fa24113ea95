#include "transport/tcp/tcp.h"

#include "base/error.h"
#include "transport/exports.h"
#include "transport/tcp/address.h"
#include "transport/tcp/link.h"
#include "transport/tcp/progress.h"
#include "transport/tcp/service.h"

namespace hmc::tcp {

namespace {

class TcpRegistration final : public Registration {
 public:
  TcpRegistration(Exports& exports, const Region& what, Access allowed)
      : Registration(what, allowed),
        exports_(exports),
        id_(exports.add(what, allowed)),
        key_(Key{id_, what.size, allowed == Access::readWrite}.encode()) {}
  ~TcpRegistration() override { exports_.remove(id_); }

  const std::string& key() const override { return key_; }

 private:
  Exports& exports_;
  const uint64_t id_;
  const std::string key_;
};

// The first is ours, where the peer does not want more.
std::vector<Transport::Path> pathsOf(const TcpOptions& options) {
  if (options.tls) return {{describe(options, false), 15000, 0.7}};
  Transport::Path plain{describe(options, false), 15000, 2.5};
  Transport::Path checked{describe(options, true), 17000, 2};
  if (options.integrity) return {std::move(checked)};
  return {std::move(plain), std::move(checked)};
}

class TcpTransport final : public Transport {
 public:
  TcpTransport(const TcpOptions& options, std::unique_ptr<Exports> exports,
               std::unique_ptr<Service> service, std::unique_ptr<Progress> progress)
      : Transport({"tcp", "tcp", {DeviceKind::cpu}, options.piece, pathsOf(options)}),
        options_(options),
        exports_(std::move(exports)),
        progress_(std::move(progress)),
        service_(std::move(service)) {
    service_->countIn(counters());
  }

  Result<std::unique_ptr<Registration>> registerRegion(const Region& region, Access access,
                                                       Exposure) override {
    if (region.ptr == nullptr || region.size == 0) {
      return error(Code::invalidArgument, "a region of {} bytes at {} cannot be registered",
                   region.size, region.ptr);
    }
    if (!region.device.isHost()) {
      return error(Code::unsupported, "tcp reads and writes host memory, and this is {} memory",
                   region.device.toString());
    }
    return std::unique_ptr<Registration>(new TcpRegistration(*exports_, region, access));
  }
  Result<std::unique_ptr<Link>> openLink(const LinkOptions& options) override {
    return TcpLink::create(*service_, *progress_, counters(), options_, options);
  }
  bool progress(Deadline until) override { return progress_->run(until); }
  void wake() override { progress_->wake(); }

 private:
  const TcpOptions options_;
  const std::unique_ptr<Exports> exports_;
  const std::unique_ptr<Progress> progress_;
  const std::unique_ptr<Service> service_;
};

}  // namespace

std::string describe(const TcpOptions& options, bool checked) {
  const char* how = options.tls ? "tls, " : checked ? "checked, " : "";
  return fmt::format("{}{} stream{}", how, options.streams, options.streams == 1 ? "" : "s");
}

Result<std::unique_ptr<Transport>> create(const TcpOptions& options) {
  if (options.streams < 1 || options.streams > static_cast<int>(kMostStreams)) {
    return error(Code::invalidArgument, "{} tcp streams: 1 to {} are possible", options.streams,
                 kMostStreams);
  }
  if (options.piece < 1 || options.piece > kLargestRequest) {
    return error(Code::invalidArgument, "tcp pieces of {} bytes: 1 to {} are possible",
                 options.piece, kLargestRequest);
  }
  auto exports = std::make_unique<Exports>();
  HMC_ASSIGN(auto service, Service::create(*exports, options));
  HMC_ASSIGN(auto progress, Progress::create());
  return std::unique_ptr<Transport>(
      new TcpTransport(options, std::move(exports), std::move(service), std::move(progress)));
}

}  // namespace hmc::tcp
