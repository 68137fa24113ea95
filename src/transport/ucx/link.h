#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "transport/transport.h"
#include "transport/ucx/outgoing.h"
#include "transport/ucx/service.h"

namespace hmc::ucx {

// The data path to one peer: out_ sends our operations, the service serves the peer's.
class UcxLink final : public Link, private Service::Member {
 public:
  // Must not outlive `progress` and `service`.
  static Result<std::unique_ptr<Link>> create(Progress& progress, Service& service,
                                              const std::string& version,
                                              TransportCounters& counters,
                                              const LinkOptions& options);
  ~UcxLink() override;

  const std::string& address() const override { return encoded_; }
  Status connect(std::string_view peerAddress) override;
  Result<std::unique_ptr<RemoteMemory>> importKey(std::string_view key, Deadline deadline,
                                                  void* place) override;
  size_t post(std::span<const Op> ops) override { return out_.post(ops); }
  void close(const Status& why) override;

 private:
  UcxLink(Progress& progress, Service& service, TransportCounters& counters,
          const LinkOptions& options);

  bool broken() const override { return broken_; }
  void peerLeft(const Status& why, bool fenced) override;

  Service& service_;
  const uint64_t number_;
  std::string encoded_;
  std::atomic<bool> connected_{false};
  std::atomic<bool> broken_{false};
  Outgoing out_;
};

}  // namespace hmc::ucx
