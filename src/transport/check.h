#pragma once

#include "transport/transport.h"

namespace hmc {

const char* opName(OpKind kind);  // "put", "get"

// For a transport that does not map memory: ok without a place.
Status checkPlace(const void* place, const char* transport);

// Does the range lie inside a peer's memory of that size, and may a peer do that to it?
Status checkRange(OpKind kind, uint64_t offset, uint64_t size, uint64_t memorySize, Access access);

// What an operation on memory gets whose owner has taken it back.
Status memoryRevoked();

// What it gets whose memory is there no more, or protected: where the transfer began, or at the
// owner's.
Status unusableHere(OpKind kind, const void* local, uint64_t size);
Status unusableThere(OpKind kind, uint64_t offset, uint64_t size);

// What it gets when the peer may have given us up, see Lease::held().
Status notHeld(const Lease& lease);

// Answers how many, as post() does.
size_t failAll(std::span<const Op> ops, const Status& why);

// The origin's part of point 7: does the operation have a size that one may have, lie inside the
// peer's memory, and not write where it may only read?
Status checkOp(const Op& op, size_t largest);

}  // namespace hmc
