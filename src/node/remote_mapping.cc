#include "node/remote_mapping.h"

#include <algorithm>

#include "base/error.h"
#include "memory/backends.h"
#include "node/node_impl.h"
#include "transport/check.h"

namespace hmc {

namespace {
// Did a transfer end because its link did? Then so will the next one.
bool linkEnded(const Status& status) {
  return status.code() == Code::disconnected || status.code() == Code::cancelled ||
         status.code() == Code::deadlineExceeded;
}

// Of the device that may copy by itself between the two; null where none does.
Backend* copyingBackend(const Device& local, const Device& remote) {
  const Device& device = local.isHost() ? remote : local;
  return device.isHost() ? nullptr : loadedBackend(device.kind);
}

using Paths = std::vector<std::unique_ptr<OpenPath>>;

// The path whose memory lies here; null when there is none.
const OpenPath* mappedPath(const Paths& paths) {
  for (const auto& path : paths) {
    if (path->memory && path->memory->mapped.data) return path.get();
  }
  return nullptr;
}

Mapped mappedOf(const Paths& paths) {
  const OpenPath* path = mappedPath(paths);
  return path ? path->memory->mapped : Mapped{};
}

TransportCounters* mappedCountersOf(const Paths& paths) {
  const OpenPath* path = mappedPath(paths);
  return path ? &path->engine.transport().counters() : nullptr;
}

// Sizes from 1 to this one are copied into the mapped path, when they come from the host. None
// where transfers are traced: the engine does that.
uint64_t mappedUpTo(const Paths& paths, const PathTables& tables, OpKind kind) {
  if (paths.front()->engine.traced()) return 0;
  const auto& smallest = tables.of(kind, DeviceKind::cpu).ranges().front();
  const auto& memory = paths[smallest.path]->memory;
  return memory && memory->mapped.data ? smallest.largest : 0;
}

// The paths lead to one region; what one of them does not believe, none does.
uint64_t sizeOf(const Paths& paths) {
  uint64_t size = UINT64_MAX;
  for (const auto& path : paths) size = std::min(size, path->size);
  return size;
}

}  // namespace

std::string OpenPath::describe() const {
  if (far) return name() + " (staged at the target)";
  return memory->path().empty() ? name() : fmt::format("{} ({})", name(), memory->path());
}

RemoteMapping::RemoteMapping(std::shared_ptr<NodeImpl> node, std::shared_ptr<PeerState> peer,
                             std::string name, uint64_t number,
                             std::unique_ptr<GrantedOpening> granted,
                             std::vector<std::unique_ptr<OpenPath>> paths, PathTables tables,
                             Device device)
    : node_(std::move(node)),
      peer_(std::move(peer)),
      name_(std::move(name)),
      number_(number),
      granted_(std::move(granted)),
      paths_(std::move(paths)),
      tables_(std::move(tables)),
      mapped_(mappedOf(paths_)),
      mappedCounters_(mappedCountersOf(paths_)),
      mappedUpTo_{mappedUpTo(paths_, tables_, OpKind::put),
                  mappedUpTo(paths_, tables_, OpKind::get)},
      atOnce_{std::min(mappedUpTo_[0], uint64_t{kAtOnce}),
              std::min(mappedUpTo_[1], uint64_t{kAtOnce})},
      size_(sizeOf(paths_)),
      writable_(paths_.front()->access == Access::readWrite),
      device_(device),
      lease_(peer_->channel().lease()->length()) {}

RemoteMapping::~RemoteMapping() {
  peer_->regions().remove(*this);
}

bool RemoteMapping::waitsForNobody(const LocalMemory& local, void* stream) const {
  const bool alone = std::all_of(paths_.begin(), paths_.end(), [](const auto& path) {
    return path->memory && path->memory->inProcess;
  });
  if (!mapped() && !alone) return false;
  if (!stream) return true;
  if (local.host()) return false;  // which is an error, and start() says so
  const auto event = recordOn({local.region().device, stream});
  if (!event.ok()) return false;
  const auto passed = (*event)->passed();
  return passed.ok() && *passed;
}

void RemoteMapping::revoke(const std::function<void(const Status&)>& released) {
  for (auto& limit : atOnce_) limit.store(0);
  revoked_.store(true);
  for (const auto& path : paths_) {
    if (path->memory) path->memory->revoke(released);
  }
}

Status RemoteMapping::revokedStatus() const {
  return error(Code::notFound, "region \"{}\" of {} was revoked by its owner{}", name_,
               peer_->title(),
               granted_ ? ", or the grant has expired: ask for another" : ": open it again");
}

Status RemoteMapping::takenStatus() const {
  if (revoked_.load()) return revokedStatus();
  if (!taken()) return Status();
  return error(Code::disconnected, "the connection to {} ended meanwhile", peer_->title());
}

const std::string& RemoteMapping::transport() const {
  return paths_[tables_.of(OpKind::put, DeviceKind::cpu).at(1)]->name();
}

std::string RemoteMapping::pathsBySize(const PathTable& table) const {
  std::string text;
  for (const auto& range : table.ranges()) {
    text += (text.empty() ? "" : ", ") + paths_[range.path]->describe();
    if (range.largest != UINT64_MAX) text += fmt::format(" up to {} bytes", range.largest);
  }
  return text;
}

std::string RemoteMapping::path() const {
  const std::string puts = pathsBySize(tables_.of(OpKind::put, DeviceKind::cpu));
  const std::string gets = pathsBySize(tables_.of(OpKind::get, DeviceKind::cpu));
  return puts == gets ? puts : fmt::format("put: {}; get: {}", puts, gets);
}

std::string RemoteMapping::pathOf(const TransferState* transfer) const {
  for (const auto& path : paths_) {
    const bool taken = transfer ? &path->engine == &transfer->engine()
                                : path->memory && path->memory->mapped.data == mapped_.data;
    if (taken) return path->describe();
  }
  return path();
}

bool RemoteMapping::serves(const OpenPath& path, const LocalMemory& local) const {
  if (path.ended.load(std::memory_order_relaxed)) return false;
  // Staging what the transport should have registered is for when there is no other path.
  return local.through(path.transport).registration ||
         !path.engine.touches(local.region().device.kind);
}

OpenPath& RemoteMapping::pathFor(OpKind kind, const LocalMemory& local, uint64_t piece) const {
  if (paths_.size() == 1) return *paths_.front();
  OpenPath& quickest = *paths_[tables_.of(kind, local.region().device.kind).at(piece)];
  if (serves(quickest, local)) return quickest;
  for (const auto& other : paths_) {
    if (serves(*other, local)) return *other;
  }
  return quickest;
}

void RemoteMapping::note(OpenPath& path, const Status& outcome) const {
  if (!linkEnded(outcome)) return;
  if (outcome.code() == Code::disconnected) {
    peer_->drop(path.link, outcome);
  } else {
    peer_->retire(path.link);
  }
  // A late transfer says nothing about the next one.
  if (outcome.code() != Code::deadlineExceeded) path.ended.store(true, std::memory_order_relaxed);
}

Status RemoteMapping::runThroughEngine(OpKind kind, const LocalMemory& local, uint64_t localOffset,
                                       uint64_t remoteOffset, size_t size,
                                       std::chrono::nanoseconds timeout) const {
  if (!fits(localOffset, size, local.region().size) || !fits(remoteOffset, size, size_))
      [[unlikely]] {
    return Pieces(Strided{localOffset, 0, remoteOffset, 0, 1, size})
        .check(local.region().size, size_, opName(kind))
        .within(peer_->title());
  }
  if (!allowed(kind, local)) [[unlikely]]
    return explainRefusal(kind, local);
  if (revoked_.load()) [[unlikely]]
    return revokedStatus();
  if (size == 0) return peer_->channel().status();
  OpenPath& path = pathFor(kind, local, size);
  Status status =
      path.engine.run(kind, routeFrom(local, path), localOffset, remoteOffset, size, timeout);
  if (!status.ok()) [[unlikely]] {
    note(path, status);
    if (revoked_.load()) return revokedStatus();
  }
  if (status.code() == Code::deadlineExceeded) [[unlikely]]
    return status.within(fmt::format("{} of {} bytes with {}", opName(kind), size, peer_->title()));
  return status;
}

bool RemoteMapping::copyAtOnce(OpKind kind, const LocalMemory& local,
                               const std::vector<Block>& blocks) const {
  if (!copies(kind, local) || revoked_.load(std::memory_order_relaxed)) return false;
  size_t total = 0;
  for (const Block& block : blocks) {
    if (!fits(block.localOffset, block.size, local.region().size) ||
        !fits(block.remoteOffset, block.size, size_) || block.size > kListAtOnce - total ||
        block.size > mappedUpTo_[static_cast<size_t>(kind)]) {
      return false;
    }
    total += block.size;
  }
  if (!watched(total)) return false;
  auto copyOfBlock = [&](const Block& block) {
    return copyOf(kind, local, block.localOffset, block.remoteOffset, block.size);
  };
  for (size_t i = 0; i < blocks.size(); ++i) {
    const MappedCopy copy = copyOfBlock(blocks[i]);
    if (i + 1 < blocks.size()) copyOfBlock(blocks[i + 1]).prefetchDuring(copy);
    copy.run();
  }
  mappedCounters_->count(blocks.size(), total);
  return !takenMeanwhile();
}

Result<uint64_t> RemoteMapping::changeAtomically(const AtomicChange& change,
                                                 Deadline deadline) const {
  HMC_TRY(checkFork());
  Status allowed = change.check(device_, size_, access());
  if (!allowed.ok()) return allowed.within(peer_->title());
  if (revoked_.load()) return revokedStatus();
  if (mayCopyMapped(OpKind::put)) {
    auto before = change.apply(mapped_.data);
    if (!before.ok()) return before.status().within(peer_->title());
    if (const Status taken = takenStatus(); !taken.ok()) return taken.within(change.name());
    return before;
  }
  const AtomicRequest request{name_, number_, change};
  auto answer = peer_->channel().call(kChangeAtomically, request.encode(), deadline);
  if (answer.ok()) return AtomicRequest::decodeAnswer(*answer);
  return revoked_.load() ? revokedStatus() : answer.status().within(change.name());
}

Result<Ticket> RemoteMapping::start(const Self& self, OpKind kind,
                                    const std::shared_ptr<LocalMemory>& local,
                                    const std::vector<Block>& blocks, const StreamOrder& order) {
  const bool ordered = order.after || order.before;
  if (!ordered && self->copyAtOnce(kind, *local, blocks)) return Ticket(self, nullptr);
  return start(self, kind, local, Pieces(blocks), order);
}

Result<Ticket> RemoteMapping::start(const Self& self, OpKind kind,
                                    const std::shared_ptr<LocalMemory>& local,
                                    const Strided& strided, const StreamOrder& order) {
  return start(self, kind, local, Pieces(strided), order);
}

Result<Ticket> RemoteMapping::start(const Self& self, OpKind kind,
                                    const std::shared_ptr<LocalMemory>& local, Pieces pieces,
                                    const StreamOrder& order) {
  const Device device = local->region().device;
  if (device.isHost() && (order.after || order.before)) {
    return error(Code::invalidArgument, "{} of memory of the host has no stream to be ordered with",
                 opName(kind));
  }
  std::shared_ptr<DeviceEvent> after;
  if (order.after) {
    HMC_ASSIGN(after, recordOn({device, order.after}));
  }
  std::unique_ptr<DeviceEvent> held;
  if (order.before) {
    HMC_ASSIGN(held, hold({device, order.before}));
  }
  HMC_ASSIGN(auto state, self->start(kind, local, std::move(pieces), self, std::move(after)));
  if (held) HMC_TRY(self->node_->streamHolds().releaseAfter(state, std::move(held)));
  return Ticket(self, std::move(state));
}

Result<std::shared_ptr<TransferState>> RemoteMapping::start(
    OpKind kind, std::shared_ptr<const LocalMemory> local, Pieces pieces,
    std::shared_ptr<const RemoteMapping> self, std::shared_ptr<DeviceEvent> after) const {
  if (Backend* backend = copyingBackend(local->region().device, device_))
    pieces.writeDownFor(*backend);
  Status checked = pieces.check(local->region().size, size_, opName(kind));
  if (!checked.ok()) return checked.within(peer_->title());
  if (!allowed(kind, *local)) return explainRefusal(kind, *local);
  if (revoked_.load()) return revokedStatus();
  OpenPath& path = pathFor(kind, *local, pieces.typicalSize());
  Route route = routeFrom(*local, path);
  auto transfer = path.engine.start(kind, route, std::move(pieces),
                                    {std::move(local), std::move(self)}, std::move(after));
  if (!transfer->done()) peer_->track(transfer);
  return transfer;
}

Status RemoteMapping::noteEnd(const TransferState& transfer, const Status& outcome) const {
  peer_->forget(transfer);
  // A transfer that was cancelled need not have lost its link.
  for (const auto& path : paths_) {
    if (outcome.code() == Code::disconnected && &path->engine == &transfer.engine())
      note(*path, outcome);
  }
  const bool failed = !outcome.ok() && outcome.code() != Code::cancelled;
  return failed && revoked_.load() ? revokedStatus() : outcome;
}

bool RemoteMapping::allowed(OpKind kind, const LocalMemory& local) const {
  return !fork_.inChild() && (kind == OpKind::get || writable_) && local.node() == node_.get();
}

// Why allowed() says no.
Status RemoteMapping::explainRefusal(OpKind kind, const LocalMemory& local) const {
  if (fork_.inChild()) return ForkGuard::refusal();
  if (kind == OpKind::put && !writable_) {
    return error(Code::permissionDenied, "{} registered that region for reading only",
                 peer_->title());
  }
  return error(Code::invalidArgument, "the local region \"{}\" belongs to another Node",
               local.name());
}

Route RemoteMapping::routeFrom(const LocalMemory& local, const OpenPath& path) const {
  const auto& entry = local.through(path.transport);
  if (!entry.registration && path.engine.touches(local.region().device.kind)) [[unlikely]]
    peer_->paths().stagedHere(path.name(), entry.why.message());
  return {path.link.get(),
          entry.registration.get(),
          local.region(),
          path.memory.get(),
          entry.staged || (path.memory && path.memory->hostOnly && !local.host()),
          lease_,
          path.far.get(),
          peer_->title().c_str()};
}

}  // namespace hmc
