#include "transport/ipc/link.h"

#include "base/error.h"
#include "base/random.h"
#include "memory/copy.h"
#include "transport/check.h"

namespace hmc::ipc {

namespace {

// Bounds how long a missed wake-up delays the wait for a fence.
constexpr std::chrono::milliseconds kFencePoll{1};

// Why each path was not taken.
struct Refusals {
  Code code = Code::unsupported;  // of the first that says more than that it is not offered
  std::string reasons;
  std::string broken;  // the reasons of those that were offered and should have worked

  void add(const char* path, const Status& status) {
    if (code == Code::unsupported) code = status.code();
    append(reasons, path, status.message());
    if (status.code() == Code::unsupported) return;
    append(broken, path, status.message());
    if (status.code() == Code::permissionDenied) broken += kPermissionFix;
    if (status.code() == Code::notFound) broken += kNamespaceFix;
  }

 private:
  static constexpr const char* kPermissionFix =
      " (let processes of one user trace each other: sudo sysctl -w kernel.yama.ptrace_scope=0; or "
      "let the owner's Node allocate the memory)";
  static constexpr const char* kNamespaceFix =
      " (let both processes share a pid namespace, or let the owner's Node allocate the memory)";
  static void append(std::string& list, const char* path, const std::string& why) {
    list += std::string(list.empty() ? "" : "; ") + path + ": " + why;
  }
};

}  // namespace

IpcLink::IpcLink(Shared& shared, const LinkOptions& options)
    : shared_(shared),
      lease_(options.lease),
      nonce_(randomBytes(kNonceSize)),
      address_(encode(Address{shared.fds.name(), processNonce(), nonce_})) {
  shared_.service.addLink(nonce_, lease_);
}

IpcLink::~IpcLink() {
  close(error(Code::cancelled, "the link was destroyed"));
  shared_.deviceCopies.drain(*this, kCopyTimeout);
  if (!outgoing_) return;
  // The ring itself gives up when the lease is over.
  Doorbell& doorbell = shared_.page.get()->progress;
  for (;;) {
    uint32_t seen = doorbell.count.load();
    outgoing_->pump();
    if (outgoing_->idle()) break;
    doorbell.sleep(seen, kFencePoll);
  }
  shared_.remove(outgoing_.get());
}

Status IpcLink::connect(std::string_view peerAddress) {
  HMC_ASSIGN(Address peer, decodeAddress(peerAddress));
  std::lock_guard lock(mutex_);
  if (peer_) return error(Code::invalidArgument, "an ipc link is connected only once");
  peer_ = std::move(peer);
  return Status();
}

Status IpcLink::closedBecause() const {
  std::lock_guard lock(mutex_);
  return closed_;
}

void IpcLink::close(const Status& why) {
  const Status reason = why.ok() ? error(Code::cancelled, "the link was closed") : why;
  std::shared_ptr<Outgoing> ring;
  {
    std::lock_guard lock(mutex_);
    if (!closed_.ok()) return;
    closed_ = reason;
    ring = outgoing_;
  }
  closing_.store(true, std::memory_order_release);
  if (ring) ring->close(reason);
  shared_.deviceCopies.close(*this, reason);
  shared_.service.removeLink(nonce_);
}

Status IpcLink::checkKey(const Key& key) const {
  std::lock_guard lock(mutex_);
  if (!closed_.ok()) return closed_;
  if (!peer_) return error(Code::invalidArgument, "the ipc link is not connected yet");
  if (peer_->process != key.process) {
    return error(Code::invalidArgument, "the ipc key is not one of this link's peer");
  }
  return Status();
}

Result<std::unique_ptr<RemoteMemory>> IpcLink::importKey(std::string_view bytes, Deadline deadline,
                                                         void* place) {
  HMC_ASSIGN(Key key, decodeKey(bytes));
  HMC_TRY(checkKey(key));
  Refusals refusals;
  if (shared_.options.allowMapping) {
    auto mapped = importMapped(key, closing_, deadline, place);
    if (mapped.ok() || place) return mapped;
    refusals.add("mapping", mapped.status());
  }
  HMC_TRY(checkPlace(place, "ipc without mapping"));
  if (shared_.options.allowProcessVm) {
    auto process = importProcess(key, refusals.broken, deadline);
    if (process.ok()) return process;
    refusals.add("process_vm", process.status());
  }
  auto ring = importRing(key, refusals.broken, deadline);
  if (ring.ok()) return ring;
  refusals.add("ring", ring.status());
  return error(refusals.code, "the peer's {} bytes of {} memory cannot be reached: {}", key.size,
               key.device.toString(), refusals.reasons);
}

Result<std::unique_ptr<RemoteMemory>> IpcLink::importRing(const Key& key, std::string slower,
                                                          Deadline deadline) {
  if (key.pageToken.empty()) {
    return error(Code::unsupported, "its owner does not offer it for a ring");
  }
  HMC_ASSIGN(Outgoing * ring, openRing(key, deadline));
  return std::unique_ptr<RemoteMemory>(std::make_unique<RingRemote>(key, *ring, std::move(slower)));
}

Result<Outgoing*> IpcLink::openRing(const Key& key, Deadline deadline) {
  Outgoing::Peer peer{key.exchange, key.pageToken, {}};
  {
    std::lock_guard lock(mutex_);
    if (outgoing_) return outgoing_.get();
    peer.link = peer_->link;
  }
  // Two threads may both get here; the second ring is dropped again.
  HMC_ASSIGN(auto made, Outgoing::open(shared_.fds, shared_.page, peer, lease_, deadline));
  std::lock_guard lock(mutex_);
  if (!closed_.ok()) return closed_;
  if (!outgoing_) {
    outgoing_ = std::move(made);
    shared_.add(outgoing_);
  }
  return outgoing_.get();
}

}  // namespace hmc::ipc
