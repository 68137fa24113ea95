#include "node/atomic_change.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "base/codec.h"
#include "base/error.h"
#include "memory/range_error.h"
#include "memory/region.h"

namespace hmc {

namespace {

static_assert(std::atomic_ref<uint64_t>::is_always_lock_free, "peers share the word");

// Can the word be written? Lets the kernel write there as we would, "or" with nothing, and answer
// EFAULT where a signal would end us.
bool isWritable(char* word) {
  const int orNothing = FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0);
  return syscall(SYS_futex, word, FUTEX_WAKE_OP_PRIVATE, 0, nullptr, word, orNothing) >= 0 ||
         errno != EFAULT;
}

}  // namespace

const char* AtomicChange::name() const {
  return kind == Kind::add ? "fetch-add" : "compare-swap";
}

Status AtomicChange::check(Device device, uint64_t size, Access access) const {
  if (!fits(offset, kSize, size)) return rangeError(name(), kSize, "remote ", offset, size);
  if (access != Access::readWrite)
    return error(Code::permissionDenied, "{} in memory that is read-only", name());
  if (!device.isHost()) {
    return error(Code::unsupported, "{} in memory of {}: only memory of the host can be changed so",
                 name(), device.toString());
  }
  return Status();
}

Result<uint64_t> AtomicChange::apply(char* memory) const {
  char* const at = memory + offset;
  if (reinterpret_cast<uintptr_t>(at) % kSize != 0) {
    return error(Code::invalidArgument,
                 "{} at remote offset {}: the 8 bytes have to begin at an address that is a "
                 "multiple of 8",
                 name(), offset);
  }
  std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t*>(at));
  if (kind == Kind::add) return word.fetch_add(operand);
  uint64_t before = expected;
  word.compare_exchange_strong(before, operand);
  return before;
}

std::string AtomicRequest::encode() const {
  Writer out;
  out.string(region).u64(number).u8(static_cast<uint8_t>(change.kind)).u64(change.offset);
  return out.u64(change.operand).u64(change.expected).take();
}

Result<AtomicRequest> AtomicRequest::decode(std::string_view bytes) {
  Reader in(bytes);
  AtomicRequest request;
  request.region = in.string();
  request.number = in.u64();
  const uint8_t kind = in.u8();
  request.change.offset = in.u64();
  request.change.operand = in.u64();
  request.change.expected = in.u64();
  HMC_TRY(in.finish("the request for an atomic change"));
  if (kind > static_cast<uint8_t>(AtomicChange::Kind::compareSwap)) {
    return error(Code::invalidArgument, "{} is neither fetch-add (0) nor compare-swap (1)", kind);
  }
  request.change.kind = static_cast<AtomicChange::Kind>(kind);
  return request;
}

Result<std::string> AtomicRequest::serve(const Region& memory, Access access) const {
  HMC_TRY(change.check(memory.device, memory.size, access));
  auto* const bytes = static_cast<char*>(memory.ptr);
  if (!isWritable(bytes + change.offset)) {
    return error(Code::failed,
                 "{} at remote offset {}: the owner cannot write that memory; it was unmapped or "
                 "protected after it was registered",
                 change.name(), change.offset);
  }
  HMC_ASSIGN(const uint64_t before, change.apply(bytes));
  return Writer().u64(before).take();
}

Result<uint64_t> AtomicRequest::decodeAnswer(std::string_view bytes) {
  Reader in(bytes);
  const uint64_t before = in.u64();
  HMC_TRY(in.finish("the answer to an atomic change"));
  return before;
}

}  // namespace hmc
