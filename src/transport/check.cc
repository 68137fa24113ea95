#include "transport/check.h"

#include "memory/range_error.h"

namespace hmc {

const char* opName(OpKind kind) {
  return kind == OpKind::put ? "put" : "get";
}

Status checkPlace(const void* place, const char* transport) {
  if (!place) return Status();
  return error(Code::unsupported, "{} does not map a peer's memory, so not at {} either", transport,
               place);
}

Status memoryRevoked() {
  return error(Code::notFound, "the peer has taken that memory back");
}

Status unusableHere(OpKind kind, const void* local, uint64_t size) {
  const auto from = reinterpret_cast<uintptr_t>(local);
  const bool put = kind == OpKind::put;
  return error(
      Code::invalidArgument,
      "{} of {} bytes {} {:#x} to {:#x}: this process cannot {} all of that memory; it was "
      "unmapped or protected after it was registered",
      opName(kind), size, put ? "from" : "into", from, from + size, put ? "read" : "write");
}

Status unusableThere(OpKind kind, uint64_t offset, uint64_t size) {
  return error(Code::failed,
               "{} of {} bytes at remote offset {}: the peer cannot {} all of that memory; it was "
               "unmapped or protected there after it was registered",
               opName(kind), size, offset, kind == OpKind::put ? "write" : "read");
}

Status notHeld(const Lease& lease) {
  return error(Code::disconnected,
               "the peer has answered no heartbeat for the {} ms of the lease, and may have given "
               "this side up",
               lease.length().count());
}

size_t failAll(std::span<const Op> ops, const Status& why) {
  for (const Op& op : ops) op.completion->fail(why);
  return ops.size();
}

Status checkRange(OpKind kind, uint64_t offset, uint64_t size, uint64_t memorySize, Access access) {
  if (!fits(offset, size, memorySize)) {
    return rangeError(opName(kind), size, "remote ", offset, memorySize);
  }
  if (kind == OpKind::put && access != Access::readWrite) {
    return error(Code::permissionDenied, "put of {} bytes into memory that is read-only", size);
  }
  return Status();
}

Status checkOp(const Op& op, size_t largest) {
  if (op.size == 0 || op.size > largest) {
    return error(Code::invalidArgument, "{} of {} bytes: one operation moves 1 to {}",
                 opName(op.kind), op.size, largest);
  }
  return checkRange(op.kind, op.remoteOffset, op.size, op.remote->size, op.remote->access);
}

}  // namespace hmc
