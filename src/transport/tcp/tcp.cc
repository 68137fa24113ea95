#include "transport/tcp/tcp.h"

#include "base/error.h"
#include "transport/tcp/areas.h"
#include "transport/tcp/link.h"
#include "transport/tcp/progress.h"
#include "transport/tcp/service.h"

namespace hmc::tcp {

namespace {

constexpr int kMostStreams = 64;

class TcpTransport final : public Transport {
 public:
  TcpTransport(const TcpOptions& options, std::unique_ptr<Areas> areas,
               std::unique_ptr<Service> service, std::unique_ptr<Progress> progress)
      : Transport({"tcp", "tcp", {DeviceKind::cpu}, kLargest, {{describe(options), 15000, 2.5}}}),
        options_(options),
        areas_(std::move(areas)),
        progress_(std::move(progress)),
        service_(std::move(service)) {}

  Result<std::unique_ptr<Registration>> registerRegion(const Region& region,
                                                       Access access) override {
    if (region.ptr == nullptr || region.size == 0) {
      return error(Code::invalidArgument, "a region of {} bytes at {} cannot be registered",
                   region.size, region.ptr);
    }
    return makeRegistration(*areas_, region, access);
  }
  Result<std::unique_ptr<Link>> openLink(const LinkOptions& options) override {
    return TcpLink::create(*service_, *progress_, options_, options);
  }
  bool progress(Deadline until) override { return progress_->run(until); }
  void wake() override { progress_->wake(); }

 private:
  const TcpOptions options_;
  const std::unique_ptr<Areas> areas_;
  const std::unique_ptr<Progress> progress_;
  const std::unique_ptr<Service> service_;
};

}  // namespace

std::string describe(const TcpOptions& options) {
  return fmt::format("{} stream{}", options.streams, options.streams == 1 ? "" : "s");
}

Result<std::unique_ptr<Transport>> create(const TcpOptions& options) {
  if (options.streams < 1 || options.streams > kMostStreams) {
    return error(Code::invalidArgument, "{} tcp streams: 1 to {} are possible", options.streams,
                 kMostStreams);
  }
  auto areas = std::make_unique<Areas>();
  HMC_ASSIGN(auto service, Service::create(*areas, options.patience));
  HMC_ASSIGN(auto progress, Progress::create());
  return std::unique_ptr<Transport>(
      new TcpTransport(options, std::move(areas), std::move(service), std::move(progress)));
}

}  // namespace hmc::tcp
