#include "node/remote_mapping.h"

#include "base/error.h"
#include "node/node_impl.h"

namespace hmc {

namespace {
const char* verb(OpKind kind) {
  return kind == OpKind::put ? "put" : "get";
}

// Did a transfer end because its link did? Then so will the next one.
bool linkEnded(const Status& status) {
  return status.code() == Code::disconnected || status.code() == Code::cancelled ||
         status.code() == Code::deadlineExceeded;
}
}  // namespace

RemoteMapping::RemoteMapping(std::shared_ptr<NodeImpl> node, std::shared_ptr<PeerState> peer,
                             size_t transport, std::shared_ptr<Link> link,
                             std::unique_ptr<RemoteMemory> memory, Device device)
    : node_(std::move(node)),
      peer_(std::move(peer)),
      transport_(transport),
      engine_(*node_->engines()[transport]),
      link_(std::move(link)),
      memory_(std::move(memory)),
      mapped_(memory_->mapped),
      size_(memory_->size),
      writable_(memory_->access == Access::readWrite),
      device_(device),
      lease_(peer_->channel().lease()->length()) {}

std::string RemoteMapping::path() const {
  return memory_->how().empty() ? transport() : fmt::format("{} ({})", transport(), memory_->how());
}

Status RemoteMapping::runThroughEngine(OpKind kind, const LocalMemory& local, uint64_t localOffset,
                                       uint64_t remoteOffset, size_t size,
                                       std::chrono::nanoseconds timeout) const {
  if (!fits(localOffset, size, local.region().size) || !fits(remoteOffset, size, memory_->size))
      [[unlikely]] {
    return checkBounds({localOffset, 0, remoteOffset, 0, 1, size}, local.region().size,
                       memory_->size, verb(kind))
        .within(peer_->title());
  }
  if (!allowed(kind, local)) [[unlikely]]
    return explainRefusal(kind, local);
  if (size == 0) return peer_->channel().status();
  Status status = engine_.run(kind, routeFrom(local), localOffset, remoteOffset, size, timeout);
  if (linkEnded(status)) [[unlikely]]
    peer_->retire(link_);
  if (status.code() == Code::deadlineExceeded) [[unlikely]]
    return status.within(fmt::format("{} of {} bytes with {}", verb(kind), size, peer_->title()));
  return status;
}

bool RemoteMapping::copyAtOnce(OpKind kind, const LocalMemory& local,
                               const std::vector<Block>& blocks) const {
  if (!copies(kind, local)) return false;
  size_t total = 0;
  for (const Block& block : blocks) {
    if (!fits(block.localOffset, block.size, local.region().size) ||
        !fits(block.remoteOffset, block.size, size_) || block.size > kListAtOnce - total) {
      return false;
    }
    total += block.size;
  }
  for (const Block& block : blocks)
    copy(kind, local, block.localOffset, block.remoteOffset, block.size);
  return true;
}

Result<Ticket> RemoteMapping::start(const Self& self, OpKind kind,
                                    const std::shared_ptr<LocalMemory>& local,
                                    const std::vector<Block>& blocks) {
  if (self->copyAtOnce(kind, *local, blocks)) return Ticket(self, nullptr);
  std::vector<Shape> shapes;
  shapes.reserve(blocks.size());
  for (const Block& block : blocks)
    shapes.push_back({block.localOffset, 0, block.remoteOffset, 0, 1, block.size});
  HMC_ASSIGN(auto state, self->start(kind, local, std::move(shapes), self));
  return Ticket(self, std::move(state));
}

Result<Ticket> RemoteMapping::start(const Self& self, OpKind kind,
                                    const std::shared_ptr<LocalMemory>& local,
                                    const Strided& shape) {
  Shape one{shape.localOffset,  shape.localStride, shape.remoteOffset,
            shape.remoteStride, shape.count,       shape.length};
  HMC_ASSIGN(auto state, self->start(kind, local, {one}, self));
  return Ticket(self, std::move(state));
}

Result<std::shared_ptr<TransferState>> RemoteMapping::start(
    OpKind kind, std::shared_ptr<const LocalMemory> local, std::vector<Shape> shapes,
    std::shared_ptr<const RemoteMapping> self) const {
  for (const Shape& shape : shapes) {
    HMC_TRY(
        checkBounds(shape, local->region().size, memory_->size, verb(kind)).within(peer_->title()));
  }
  if (!allowed(kind, *local)) return explainRefusal(kind, *local);
  Route route = routeFrom(*local);
  auto transfer =
      engine_.start(kind, route, std::move(shapes), {std::move(local), std::move(self)});
  if (!transfer->done()) peer_->track(transfer);
  return transfer;
}

bool RemoteMapping::allowed(OpKind kind, const LocalMemory& local) const {
  if (inForkedChild() || (kind == OpKind::put && !writable_) || local.node() != node_.get())
    return false;
  const auto& entry = local.through(transport_);
  return entry.registration || entry.staged;
}

// Why allowed() says no.
Status RemoteMapping::explainRefusal(OpKind kind, const LocalMemory& local) const {
  if (inForkedChild()) {
    return error(Code::invalidArgument,
                 "this process was forked from one that uses HMC: create a Node of its own");
  }
  if (kind == OpKind::put && !writable_) {
    return error(Code::permissionDenied, "{} registered that region for reading only",
                 peer_->title());
  }
  if (local.node() != node_.get()) {
    return error(Code::invalidArgument, "the local region \"{}\" belongs to another Node",
                 local.name());
  }
  return local.through(transport_)
      .why.within(
          fmt::format("the local region \"{}\" is not usable over {}", local.name(), transport()));
}

Route RemoteMapping::routeFrom(const LocalMemory& local) const {
  const auto& entry = local.through(transport_);
  return {link_.get(), entry.registration.get(), local.region(), memory_.get(), entry.staged,
          lease_};
}

}  // namespace hmc
