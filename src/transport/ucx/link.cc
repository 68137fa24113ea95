#include "transport/ucx/link.h"

#include "base/error.h"
#include "base/random.h"
#include "transport/check.h"

namespace hmc::ucx {

Result<std::unique_ptr<Link>> UcxLink::create(Progress& progress, Service& service,
                                              const std::string& version,
                                              TransportCounters& counters,
                                              const LinkOptions& options) {
  std::unique_ptr<UcxLink> link(new UcxLink(progress, service, counters, options));
  Address address{link->number_, "", service.controlAddress(), version};
  HMC_ASSIGN(address.target, service.open(link->number_, *link, options.lease));
  link->encoded_ = address.encode();
  return std::unique_ptr<Link>(std::move(link));
}

UcxLink::UcxLink(Progress& progress, Service& service, TransportCounters& counters,
                 const LinkOptions& options)
    : service_(service),
      number_(randomU64() | 2),  // 0 and 1 are other events of the service
      out_(progress, counters, options.lease->length(), [this] {
        broken_ = true;
        service_.noticeBroken();
      }) {}

UcxLink::~UcxLink() {
  const Status why = error(Code::cancelled, "the link was destroyed");
  close(why);
  out_.finish(why);
  service_.remove(number_);
}

Status UcxLink::connect(std::string_view peerAddress) {
  HMC_ASSIGN(const Address peer, Address::decode(peerAddress));
  HMC_TRY(out_.connect(peer));
  Status status = service_.connect(number_, peer);
  if (!status.ok()) close(status);
  connected_ = status.ok();
  return status;
}

Result<std::unique_ptr<RemoteMemory>> UcxLink::importKey(std::string_view bytes, Deadline deadline,
                                                         void* place) {
  HMC_TRY(checkPlace(place, "ucx"));
  HMC_ASSIGN(const Key key, Key::decode(bytes));
  // First the connection that tells when the peer dies.
  if (connected_) HMC_TRY(service_.awaitPeer(number_, deadline));
  return out_.importKey(key, deadline);
}

void UcxLink::close(const Status& why) {
  out_.close(why);
  service_.leave(number_);
}

void UcxLink::peerLeft(const Status& why, bool fenced) {
  out_.close(why);
  if (fenced) out_.fenced();
}

}  // namespace hmc::ucx
