#include "api/bulk.h"

#include <algorithm>

#include "base/codec.h"
#include "memory/copy.h"

namespace hmc {

namespace {

constexpr size_t kSlots = 2;

// bulkGrant: the receiver is ready and has slots of `value` bytes, took a chunk, or gives up.
enum class Grant : uint8_t { ready, taken, refused };

// The flag of a bulkData message; its payload is the number of bytes in the slot.
constexpr uint16_t kLastChunk = 1;

size_t slotSize(const LocalMemory& buffer) {
  return buffer.region().size / (2 * kSlots);
}
size_t receiveSlot(size_t chunk, size_t slot) {
  return (chunk % kSlots) * slot;
}
size_t sendSlot(size_t chunk, const LocalMemory& buffer) {
  return buffer.region().size / 2 + (chunk % kSlots) * slotSize(buffer);
}

Status checkBuffer(const LocalMemory& buffer) {
  if (slotSize(buffer) > 0) return Status();
  return error(Code::outOfRange,
               "sendDataTo and recvDataFrom need a buffer of at least {} bytes, this one has {}",
               2 * kSlots, buffer.region().size);
}

Status sendGrant(PeerState& peer, Grant what, uint64_t value, const std::string& sentence,
                 Deadline deadline) {
  Writer out;
  out.u8(static_cast<uint8_t>(what)).u64(value).string(sentence);
  return peer.channel().send(MessageKind::bulkGrant, 0, out.bytes(), deadline);
}

// The value of the next grant, which must be of that kind.
Result<uint64_t> receiveGrant(PeerState& peer, Grant wanted, Deadline deadline) {
  auto message = peer.channel().receive(MessageKind::bulkGrant, deadline);
  HMC_TRY(message.status());
  Reader in(message->payload);
  auto what = static_cast<Grant>(in.u8());
  uint64_t value = in.u64();
  std::string sentence = in.string();
  HMC_TRY(in.finish("a grant of recvDataFrom"));
  if (what == Grant::refused)
    return error(Code::outOfRange, "{} refused the data: {}", peer.title(), sentence);
  if (what != wanted) return error(Code::failed, "{} sent grants out of order", peer.title());
  return value;
}

}  // namespace

Status sendBulk(Connection& connection, const LocalMemory& buffer, const Region& from,
                Deadline deadline) {
  HMC_TRY(checkBuffer(buffer));
  PeerState& peer = *connection.peer;
  std::lock_guard oneAtATime(connection.bulk);
  HMC_ASSIGN(uint64_t theirSlot, receiveGrant(peer, Grant::ready, deadline));
  const size_t chunk = std::min<size_t>(slotSize(buffer), theirSlot);
  if (chunk == 0) return error(Code::failed, "{} announced slots of 0 bytes", peer.title());
  size_t sent = 0;
  size_t count = 0;
  size_t taken = 0;
  do {
    if (count - taken == kSlots) {
      HMC_TRY(receiveGrant(peer, Grant::taken, deadline).status());
      ++taken;
    }
    size_t size = std::min(chunk, from.size - sent);
    size_t ours = sendSlot(count, buffer);
    HMC_TRY(copy(buffer.region().slice(ours, size), from.slice(sent, size)));
    HMC_TRY(connection.buffer->run(OpKind::put, buffer, ours, receiveSlot(count, theirSlot), size,
                                   deadline.left()));
    sent += size;
    ++count;
    Writer out;
    out.u64(size);
    HMC_TRY(peer.channel().send(MessageKind::bulkData, sent == from.size ? kLastChunk : 0,
                                out.bytes(), deadline));
  } while (sent < from.size);
  for (; taken < count; ++taken) HMC_TRY(receiveGrant(peer, Grant::taken, deadline).status());
  return Status();
}

Result<size_t> receiveBulk(PeerState& peer, const LocalMemory& buffer, const Region& into,
                           Deadline deadline) {
  HMC_TRY(checkBuffer(buffer));
  const size_t slot = slotSize(buffer);
  HMC_TRY(sendGrant(peer, Grant::ready, slot, "", deadline));
  size_t received = 0;
  for (size_t count = 0;; ++count) {
    auto message = peer.channel().receive(MessageKind::bulkData, deadline);
    HMC_TRY(message.status());
    Reader in(message->payload);
    uint64_t size = in.u64();
    HMC_TRY(in.finish("a chunk of sendDataTo"));
    if (size > slot)
      return error(Code::failed, "{} announced a chunk of {} bytes in a slot of {}", peer.title(),
                   size, slot);
    if (!fits(received, size, into.size)) {
      Status small =
          error(Code::outOfRange, "{} sends more than the {} bytes that there is room for",
                peer.title(), into.size);
      sendGrant(peer, Grant::refused, 0, small.message(), deadline);
      return small;
    }
    HMC_TRY(
        copy(into.slice(received, size), buffer.region().slice(receiveSlot(count, slot), size)));
    received += size;
    HMC_TRY(sendGrant(peer, Grant::taken, 0, "", deadline));
    if (message->flags & kLastChunk) return received;
  }
}

}  // namespace hmc
