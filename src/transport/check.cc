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

Status checkOp(const Op& op, size_t largest) {
  if (op.size == 0 || op.size > largest) {
    return error(Code::invalidArgument, "{} of {} bytes: one operation moves 1 to {}",
                 opName(op.kind), op.size, largest);
  }
  if (!fits(op.remoteOffset, op.size, op.remote->size)) {
    return rangeError(opName(op.kind), op.size, "remote ", op.remoteOffset, op.remote->size);
  }
  if (op.kind == OpKind::put && op.remote->access != Access::readWrite) {
    return error(Code::permissionDenied, "put of {} bytes into memory that is read-only", op.size);
  }
  return Status();
}

}  // namespace hmc
