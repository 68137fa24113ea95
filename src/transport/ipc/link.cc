#include "transport/ipc/link.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "memory/copy.h"
#include "transport/check.h"
#include "transport/ipc/registration.h"

namespace hmc::ipc {

namespace {

// Bounds how long a missed wake-up delays the wait for a fence.
constexpr std::chrono::milliseconds kFencePoll{1};

// A link needs one; threads that open their first memory at the same time may each make one.
constexpr size_t kMostMappings = 16;

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
      " (let processes of one user trace each other, as root: sysctl -w "
      "kernel.yama.ptrace_scope=0; or "
      "let the owner's Node allocate the memory)";
  static constexpr const char* kNamespaceFix =
      " (let both processes share a pid namespace, or let the owner's Node allocate the memory)";
  static void append(std::string& list, const char* path, const std::string& why) {
    list += std::string(list.empty() ? "" : "; ") + path + ": " + why;
  }
};

const IpcRemote& remoteOf(const Op& op) {
  return static_cast<const IpcRemote&>(*op.remote);
}

// The short form of checkRange().
bool allowed(const Op& op) {
  return fits(op.remoteOffset, op.size, op.remote->size) &&
         (op.kind == OpKind::get || op.remote->access == Access::readWrite);
}

MappedCopy copyOf(const Op& op, const MappedRemote& remote) {
  return {op.kind, static_cast<char*>(op.local), remote.region.at(op.remoteOffset), op.size};
}

// What fails here fails in throughProcess() too, which says why.
inline bool moveSmall(const Op& op) {
  auto& remote = static_cast<const ProcessRemote&>(*op.remote);
  return remote.process.moveSmall(op.kind, op.local, remote.address + op.remoteOffset, op.size);
}

// Host memory at either end is what a device copies straight from and into.
void pinForDevices(const Registration& near, const MappedRemote& far) {
  if (far.mapping && far.region.device.isHost()) far.mapping->pins.pinForLoaded(far.region);
  if (near.region.device.isHost()) static_cast<const IpcRegistration&>(near).pinForDevices();
}

// Finishes neighbours that share a completion in one go.
class Finisher {
 public:
  ~Finisher() { flush(); }
  void add(Completion* completion) {
    if (completion != completion_) {
      flush();
      completion_ = completion;
      count_ = 0;
    }
    ++count_;
  }

 private:
  void flush() {
    if (completion_) completion_->finish(count_);
  }
  Completion* completion_ = nullptr;
  uint32_t count_ = 0;
};

}  // namespace

IpcLink::IpcLink(Shared& shared, const LinkOptions& options)
    : shared_(shared),
      state_(options.lease),
      bond_{options.credentials, options.initiator},
      token_(shared.fds.serve(bond_,
                              [this](Parcel request) {
                                return answerNeighbour(shared_, token_, *this, std::move(request));
                              })),
      address_(encode(Address{shared.fds.name(), token_})) {
  shared_.service.addLink(token_, state_.lease);
}

IpcLink::~IpcLink() {
  close(error(Code::cancelled, "the link was destroyed"));
  shared_.deviceCopies.drain(*this, kCopyTimeout);
  if (!outgoing_) return;
  // The ring itself gives up when the lease is over.
  Doorbell& doorbell = shared_.page->progress;
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

Status IpcLink::stopped() const {
  const Status closed = closedBecause();
  return closed.ok() ? notHeld(*state_.lease) : closed;
}

void IpcLink::close(const Status& why) {
  const Status reason = why.ok() ? error(Code::cancelled, "the link was closed") : why;
  std::shared_ptr<Outgoing> ring;
  std::vector<std::weak_ptr<Attached>> mapped;
  {
    std::lock_guard lock(mutex_);
    if (!closed_.ok()) return;
    closed_ = reason;
    ring = outgoing_;
    mapped = std::move(guarded_);
  }
  state_.closing.store(true, std::memory_order_release);
  if (ring) ring->close(reason);
  shared_.deviceCopies.close(*this, reason);
  shared_.fds.withdraw(token_);
  shared_.service.removeLink(token_);
  for (const auto& one : mapped) {
    if (auto attached = one.lock()) attached->replaceIfTaken();
  }
  // A peer that has said goodbye needs no force. Nobody adds to these any more.
  if (state_.lease->parted()) return;
  for (PeerMappings& mappings : peerMappings_) mappings.protect();
}

Status IpcLink::acceptMappings(PeerMappings mappings) {
  std::lock_guard lock(mutex_);
  if (!closed_.ok()) return closed_;
  if (peerMappings_.size() == kMostMappings) {
    return error(Code::exhausted, "the peer has {} tables of mappings and takes no more",
                 kMostMappings);
  }
  peerMappings_.push_back(std::move(mappings));
  return Status();
}

// Two threads may both get here; the second table is not used then.
std::shared_ptr<MappingGuard> IpcLink::guardOf(const Neighbour& peer, Deadline deadline) {
  {
    std::lock_guard lock(mutex_);
    if (guardTried_) return guard_;
  }
  auto made = MappingGuard::create();
  const Status given = made.ok() ? peer.giveMappings(**made, deadline) : made.status();
  if (!given.ok()) logDebug("ipc: a lost peer keeps its mappings: {}", given.message());
  std::lock_guard lock(mutex_);
  if (!std::exchange(guardTried_, true) && given.ok()) guard_ = *std::move(made);
  return guard_;
}

void IpcLink::guard(const MappedRemote& remote, const Neighbour& peer, Deadline deadline) {
  if (!remote.mapping || !remote.guardable) return;
  auto guard = guardOf(peer, deadline);
  std::lock_guard lock(mutex_);
  if (!guard || !closed_.ok()) return;
  Attached& attached = *remote.mapping;
  attached.range = guard->add(attached.wholePages);
  attached.guard = std::move(guard);
  std::erase_if(guarded_, [](const auto& one) { return one.expired(); });
  guarded_.push_back(remote.mapping);
}

Result<Neighbour> IpcLink::neighbour() const {
  std::lock_guard lock(mutex_);
  if (!closed_.ok()) return closed_;
  if (!peer_) return error(Code::invalidArgument, "the ipc link is not connected yet");
  return Neighbour(*peer_, bond_);
}

Result<std::unique_ptr<RemoteMemory>> IpcLink::importKey(std::string_view bytes, Deadline deadline,
                                                         void* place) {
  HMC_ASSIGN(const Key key, decodeKey(bytes));
  HMC_ASSIGN(const Neighbour peer, neighbour());
  HMC_ASSIGN(Reached reached, peer.describe(key, deadline));
  Refusals refusals;
  if (shared_.options.allowMapping) {
    auto mapped = importMapped(reached, state_, deadline, place);
    if (mapped.ok()) guard(static_cast<const MappedRemote&>(**mapped), peer, deadline);
    if (mapped.ok() || place) return mapped;
    refusals.add("mapping", mapped.status());
  }
  HMC_TRY(checkPlace(place, "ipc without mapping"));
  if (shared_.options.allowProcessVm) {
    auto process = importProcess(reached, refusals.broken);
    if (process.ok()) return process;
    refusals.add("process_vm", process.status());
  }
  const Description& what = reached.what;
  auto ring = openRing(peer, reached, deadline);
  if (ring.ok()) {
    return std::unique_ptr<RemoteMemory>(
        std::make_unique<RingRemote>(what, **ring, std::move(refusals.broken)));
  }
  refusals.add("ring", ring.status());
  return error(refusals.code, "the peer's {} bytes of {} memory cannot be reached: {}", what.size,
               what.device.toString(), refusals.reasons);
}

Result<Outgoing*> IpcLink::openRing(const Neighbour& peer, const Reached& reached,
                                    Deadline deadline) {
  if (!reached.what.page) return error(Code::unsupported, "its owner does not offer it for a ring");
  {
    std::lock_guard lock(mutex_);
    if (outgoing_) return outgoing_.get();
  }
  // Two threads may both get here; the second ring is dropped again.
  HMC_ASSIGN(auto theirs, SharedBlock<ServicePage>::attach(reached.page));
  HMC_ASSIGN(auto made,
             Outgoing::open(peer, shared_.page, std::move(theirs), state_.lease, deadline));
  std::lock_guard lock(mutex_);
  if (!closed_.ok()) return closed_;
  if (!outgoing_) {
    outgoing_ = std::move(made);
    shared_.add(outgoing_);
  }
  return outgoing_.get();
}

// The data path: what happens between post() and a completion.

bool IpcLink::copyMapped(const MappedCopy& copy, size_t& unwatched) {
  bool done = true;
  if (copy.size < unwatched) {
    unwatched -= copy.size;
    copy.run();
  } else {
    unwatched = Mapped::kUnwatched;
    done = shared_.copiers.run(copy, [this] {
      return state_.lease->held() && !state_.closing.load(std::memory_order_relaxed);
    });
  }
  // The bytes may have gone to pages that took the place of the peer's.
  return done && !state_.closing.load(std::memory_order_acquire);
}

// A copy on the host that has begun when the link is closed ends by itself, before post() returns.
size_t IpcLink::post(std::span<const Op> ops) {
  if (state_.closing.load(std::memory_order_acquire)) [[unlikely]]
    return failAll(ops, closedBecause());
  Finisher finisher;
  size_t unwatched = Mapped::kUnwatched;
  for (size_t i = 0; i < ops.size();) {
    const Op& op = ops[i];
    const IpcRemote& remote = remoteOf(op);
    if (!allowed(op)) [[unlikely]] {
      op.completion->fail(
          checkRange(op.kind, op.remoteOffset, op.size, remote.size, remote.access));
      ++i;
    } else if (remote.kind == PathKind::mappedHost && op.registration->region.device.isHost()) {
      const auto& mapped = static_cast<const MappedRemote&>(remote);
      const MappedCopy copy = copyOf(op, mapped);
      if (++i < ops.size() && ops[i].remote == &mapped && allowed(ops[i])) {
        copyOf(ops[i], mapped).prefetchDuring(copy);
      }
      if (copyMapped(copy, unwatched)) {
        finisher.add(op.completion);
      } else {
        op.completion->fail(stopped());
      }
    } else if (remote.kind == PathKind::processVm && i + 1 == ops.size() && state_.lease->held() &&
               moveSmall(op)) {
      finisher.add(op.completion);
      ++i;
    } else {
      size_t started = runSlow(ops.subspan(i));
      if (started == 0) return i;
      i += started;
    }
  }
  return ops.size();
}

size_t IpcLink::runSlow(std::span<const Op> ops) {
  switch (remoteOf(ops[0]).kind) {
    case PathKind::processVm:
      return throughProcess(ops);
    case PathKind::ring:
      return throughRing(ops);
    default:
      return throughDevice(ops);
  }
}

size_t IpcLink::throughDevice(std::span<const Op> ops) {
  const Op& first = ops[0];
  auto& remote = static_cast<const MappedRemote&>(*first.remote);
  auto alike = [&](const Op& op) {
    return op.remote == first.remote && op.kind == first.kind &&
           op.registration == first.registration && op.completion == first.completion &&
           allowed(op);
  };
  size_t count = 1;
  while (count < ops.size() && alike(ops[count])) ++count;
  pinForDevices(*first.registration, remote);
  shared_.deviceCopies.start(*this, ops.first(count), remote);
  return count;
}

bool IpcLink::postList(const ListOp& list) {
  const IpcRemote& remote = static_cast<const IpcRemote&>(*list.remote);
  const bool onHost = remote.kind == PathKind::mappedHost && list.local.device.isHost();
  if (onHost || (remote.kind != PathKind::mappedHost && remote.kind != PathKind::mappedDevice))
    return false;
  const Block& first = list.blocks.front();
  const Status allowed =
      checkRange(list.kind, first.remoteOffset, first.size, remote.size, remote.access);
  if (state_.closing.load(std::memory_order_acquire) || !allowed.ok()) {
    list.completion->fail(allowed.ok() ? closedBecause() : allowed);
    return true;
  }
  const auto& mapped = static_cast<const MappedRemote&>(remote);
  pinForDevices(*list.registration, mapped);
  return shared_.deviceCopies.start(*this, list, mapped);
}

size_t IpcLink::throughProcess(std::span<const Op> ops) {
  const Op& first = ops[0];
  auto& remote = static_cast<const ProcessRemote&>(*first.remote);
  if (ops.size() == 1) {
    first.completion->end(remote.process.move(
        first.kind, first.local, remote.address + first.remoteOffset, first.size, *state_.lease));
    return 1;
  }
  auto alike = [&](const Op& op) {
    return op.remote == first.remote && op.kind == first.kind && allowed(op);
  };
  Process::Piece pieces[Process::kMostPieces];
  size_t count = 0;
  size_t bytes = 0;
  while (count < std::min(ops.size(), Process::kMostPieces) && alike(ops[count])) {
    const Op& op = ops[count];
    bytes += op.size;
    if (count > 0 && bytes > Process::kMostAtOnce) break;
    pieces[count++] = {op.local, remote.address + op.remoteOffset, op.size};
  }
  bool all = count > 1 && state_.lease->held() && remote.process.moveAll(first.kind, pieces, count);
  Finisher finisher;
  for (size_t i = 0; i < count; ++i) {
    Status status;
    if (!all) {
      status = remote.process.move(first.kind, pieces[i].local, pieces[i].address, pieces[i].size,
                                   *state_.lease);
    }
    if (status.ok()) {
      finisher.add(ops[i].completion);
    } else {
      ops[i].completion->fail(status);
    }
  }
  return count;
}

size_t IpcLink::throughRing(std::span<const Op> ops) {
  auto& remote = static_cast<const RingRemote&>(*ops[0].remote);
  size_t count = 1;
  while (count < ops.size() && ops[count].remote == ops[0].remote && allowed(ops[count])) ++count;
  return remote.ring.post(ops.first(count), remote.region);
}

}  // namespace hmc::ipc
