#include "transfer/op_poster.h"

#include <algorithm>
#include <vector>

namespace hmc {

bool OpPoster::postNext(const Wire& wire, Cursor& next, size_t largest, size_t most,
                        Completion& completion, uint64_t transfer) const {
  largest = std::min({facts_.largest, largest, most});
  static thread_local std::vector<Op> ops;
  if (ops.size() < facts_.batch) ops.resize(facts_.batch);
  size_t filled = 0;
  size_t bytes = 0;
  Cursor at = next;
  for (; !at.atEnd() && filled < facts_.batch && bytes < most; ++filled) {
    const size_t size = at.left(largest);
    bytes += size;
    ops[filled] = {wire.kind,   wire.local.at(at.local()),       wire.registration,
                   wire.remote, wire.remoteOffset + at.remote(), size,
                   &completion};
    at.advance(size);
  }
  completion.expect(static_cast<uint32_t>(filled));
  const size_t accepted = post(wire.link, {ops.data(), filled}, transfer);
  if (accepted == filled) {
    next = at;
    return true;
  }
  completion.finish(static_cast<uint32_t>(filled - accepted));
  for (size_t i = 0; i < accepted; ++i) next.advance(ops[i].size);
  return false;
}

}  // namespace hmc
