#pragma once

#include <span>

#include "transfer/pieces.h"
#include "transfer/tracer.h"
#include "transport/check.h"

namespace hmc {

// Two memories and the link between them. Offsets of pieces count from `local` and `remoteOffset`.
struct Wire {
  Link& link;
  OpKind kind;
  Region local;
  const Registration* registration;
  const RemoteMemory* remote;
  uint64_t remoteOffset = 0;
};

// Posts operations, counts what the link took and traces it. The only caller of Link::post.
class OpPoster {
 public:
  // Without a tracer nothing is traced.
  OpPoster(Transport& transport, Tracer* tracer)
      : facts_(transport.facts()), counters_(transport.counters()), tracer_(tracer) {}

  // The pieces that come next, in operations of no more than `largest` bytes: as many as the link
  // is best given at once, about `most` bytes. False when it did not take all of them.
  bool postNext(const Wire& wire, Cursor& next, size_t largest, size_t most, Completion& completion,
                uint64_t transfer) const;

  // The operations are on one memory of a peer's. They fail where its owner took it back.
  size_t post(Link& link, std::span<const Op> ops, uint64_t transfer) const {
    UseGate& gate = ops.front().remote->gate();
    if (!gate.enter()) [[unlikely]]
      return failAll(ops, memoryRevoked());
    const size_t accepted = link.post(ops);
    gate.leave();
    size_t bytes = 0;
    for (const Op& op : ops.first(accepted)) bytes += op.size;
    counters_.count(accepted, bytes);
    if (accepted < ops.size()) ++counters_.stalls;
    if (tracer_ && accepted > 0) tracer_->post(transfer, bytes);
    return accepted;
  }

  // False when the transport does not take this list.
  bool postList(Link& link, const ListOp& list, uint64_t transfer) const {
    UseGate& gate = list.remote->gate();
    if (!gate.enter()) {
      list.completion->fail(memoryRevoked());
      return true;
    }
    const bool taken = link.postList(list);
    gate.leave();
    if (!taken) return false;
    counters_.count(list.blocks.size(), list.bytes);
    if (tracer_) tracer_->post(transfer, list.bytes);
    return true;
  }

 private:
  const Transport::Facts& facts_;
  TransportCounters& counters_;
  Tracer* const tracer_;
};

}  // namespace hmc
