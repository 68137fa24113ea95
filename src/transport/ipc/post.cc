#include <algorithm>

#include "base/error.h"
#include "memory/copy.h"
#include "memory/host_copy.h"
#include "transport/check.h"
#include "transport/ipc/link.h"

// The data path: what happens between post() and a completion.
namespace hmc::ipc {

namespace {

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

// The operation's remote memory, as it is mapped here.
Region farOf(const Op& op) {
  return static_cast<const MappedRemote&>(*op.remote).region.slice(op.remoteOffset, op.size);
}

void settle(const Op& op, const Status& status) {
  if (status.ok()) {
    op.completion->finish();
  } else {
    op.completion->fail(status);
  }
}

}  // namespace

size_t IpcLink::refuseAll(std::span<const Op> ops) {
  Status why = closedBecause();
  for (const Op& op : ops) op.completion->fail(why);
  return ops.size();
}

// A copy on the host that has begun when the link is closed ends by itself, before post() returns.
size_t IpcLink::post(std::span<const Op> ops) {
  if (closing_.load(std::memory_order_acquire)) [[unlikely]]
    return refuseAll(ops);
  Finisher finisher;
  for (size_t i = 0; i < ops.size();) {
    const Op& op = ops[i];
    const IpcRemote& remote = remoteOf(op);
    if (!allowed(op)) [[unlikely]] {
      op.completion->fail(
          checkRange(op.kind, op.remoteOffset, op.size, remote.size, remote.access));
      ++i;
    } else if (remote.kind == PathKind::mappedHost && op.registration->region.device.isHost()) {
      const auto& mapped = static_cast<const MappedRemote&>(remote);
      if (++i < ops.size() && ops[i].remote == &mapped && allowed(ops[i])) {
        copyOf(ops[i], mapped).prefetch();
      }
      shared_.copiers.run(copyOf(op, mapped));
      finisher.add(op.completion);
    } else if (remote.kind == PathKind::processVm && i + 1 == ops.size() && moveSmall(op)) {
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
      shared_.deviceCopies.start(*this, ops[0], farOf(ops[0]));
      return 1;
  }
}

size_t IpcLink::throughProcess(std::span<const Op> ops) {
  const Op& first = ops[0];
  auto& remote = static_cast<const ProcessRemote&>(*first.remote);
  if (ops.size() == 1) {
    settle(first, remote.process.move(first.kind, first.local, remote.address + first.remoteOffset,
                                      first.size));
    return 1;
  }
  auto alike = [&](const Op& op) {
    return op.remote == first.remote && op.kind == first.kind && allowed(op);
  };
  Process::Piece pieces[Process::kMostPieces];
  size_t count = 0;
  while (count < std::min(ops.size(), Process::kMostPieces) && alike(ops[count])) {
    const Op& op = ops[count];
    pieces[count++] = {op.local, remote.address + op.remoteOffset, op.size};
  }
  bool all = count > 1 && remote.process.moveAll(first.kind, pieces, count);
  Finisher finisher;
  for (size_t i = 0; i < count; ++i) {
    Status status;
    if (!all) {
      status = remote.process.move(first.kind, pieces[i].local, pieces[i].address, pieces[i].size);
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
