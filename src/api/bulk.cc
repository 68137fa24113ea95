#include "api/bulk.h"

#include <algorithm>

#include "base/codec.h"
#include "base/random.h"
#include "node/facade.h"

namespace hmc {

namespace {

constexpr size_t kSlots = 2;
constexpr MessageKind kBulkChunk = MessageKind::custom1;
constexpr MessageKind kBulkGrant = MessageKind::custom2;

// What a receiver tells a sender in kBulkGrant. Every recvDataFrom() draws a number, and both sides
// drop what carries another one: a call that failed or gave up leaves messages behind.
enum class Word : uint8_t { ready, taken, refused };

struct Grant {
  Word word{};
  uint64_t number = 0;
  uint64_t slot = 0;     // of `ready`: the bytes in each of the receiver's slots
  std::string sentence;  // of `refused`
};

// What a sender tells in kBulkChunk: so many bytes are in the next slot.
struct Chunk {
  uint64_t number = 0;
  uint64_t size = 0;
  bool last = false;
};
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

Status sendGrant(PeerState& peer, const Grant& grant, Deadline deadline) {
  Writer out;
  out.u8(static_cast<uint8_t>(grant.word)).u64(grant.number).u64(grant.slot);
  out.string(grant.sentence);
  return peer.channel().send(kBulkGrant, 0, out.bytes(), deadline);
}

// The next word about that number, or the `ready` of a newer receiver. 0 waits for any `ready`.
Result<Grant> receiveGrant(PeerState& peer, uint64_t number, Deadline deadline) {
  for (;;) {
    auto message = peer.channel().receive(kBulkGrant, deadline);
    if (!message.ok()) return message.status();
    Reader in(message->payload);
    Grant grant;
    grant.word = static_cast<Word>(in.u8());
    grant.number = in.u64();
    grant.slot = in.u64();
    grant.sentence = in.string();
    HMC_TRY(in.finish("a grant of recvDataFrom"));
    if (grant.word != Word::ready && grant.number != number) continue;
    if (grant.word == Word::refused) {
      return error(Code::outOfRange, "{} refused the data: {}", peer.title(), grant.sentence);
    }
    if (grant.word == Word::ready && grant.slot == 0)
      return error(Code::failed, "{} announced slots of 0 bytes", peer.title());
    return grant;
  }
}

Status sendChunk(PeerState& peer, const Chunk& chunk, Deadline deadline) {
  Writer out;
  out.u64(chunk.number).u64(chunk.size);
  return peer.channel().send(kBulkChunk, chunk.last ? kLastChunk : 0, out.bytes(), deadline);
}

Result<Chunk> receiveChunk(PeerState& peer, uint64_t number, size_t slot, Deadline deadline) {
  for (;;) {
    auto message = peer.channel().receive(kBulkChunk, deadline);
    if (!message.ok()) return message.status();
    Reader in(message->payload);
    Chunk chunk;
    chunk.number = in.u64();
    chunk.size = in.u64();
    chunk.last = (message->flags & kLastChunk) != 0;
    HMC_TRY(in.finish("a chunk of sendDataTo"));
    if (chunk.number != number) continue;
    if (chunk.size > slot) {
      return error(Code::failed, "{} announced a chunk of {} bytes in a slot of {}", peer.title(),
                   chunk.size, slot);
    }
    return chunk;
  }
}

// Sends everything to the receiver that is ready. Answers `taken` when it has all of it, or the
// `ready` of the receiver that came in its place.
Result<Grant> sendTo(const Grant& receiver, Connection& connection, const LocalMemory& buffer,
                     const Region& from, Deadline deadline) {
  PeerState& peer = *connection.peer;
  const size_t most = std::min<size_t>(slotSize(buffer), receiver.slot);
  size_t sent = 0;
  size_t count = 0;
  for (size_t taken = 0;;) {
    const bool done = count > 0 && sent == from.size;
    if (done || count - taken == kSlots) {
      HMC_ASSIGN(Grant grant, receiveGrant(peer, receiver.number, deadline));
      if (grant.word == Word::ready) return grant;
      ++taken;
      if (done && taken == count) return grant;
      continue;
    }
    size_t size = std::min(most, from.size - sent);
    size_t ours = sendSlot(count, buffer);
    HMC_TRY(copy(buffer.region().slice(ours, size), from.slice(sent, size)));
    HMC_TRY(connection.buffer->run(OpKind::put, buffer, ours, receiveSlot(count, receiver.slot),
                                   size, deadline.left()));
    sent += size;
    ++count;
    HMC_TRY(sendChunk(peer, {receiver.number, size, sent == from.size}, deadline));
  }
}

}  // namespace

Status sendBulk(Connection& connection, const LocalMemory& buffer, const Region& from,
                Deadline deadline) {
  HMC_TRY(checkBuffer(buffer));
  std::lock_guard oneAtATime(connection.turns->send);
  HMC_ASSIGN(Grant grant, receiveGrant(*connection.peer, 0, deadline));
  while (grant.word == Word::ready) {
    HMC_ASSIGN(grant, sendTo(grant, connection, buffer, from, deadline));
  }
  return Status();
}

Result<size_t> receiveBulk(Connection& connection, const LocalMemory& buffer, const Region& into,
                           Deadline deadline) {
  HMC_TRY(checkBuffer(buffer));
  PeerState& peer = *connection.peer;
  std::lock_guard oneAtATime(connection.turns->receive);
  const size_t slot = slotSize(buffer);
  const uint64_t number = randomU64() | 1;
  HMC_TRY(sendGrant(peer, {Word::ready, number, slot, ""}, deadline));
  size_t received = 0;
  for (size_t count = 0;; ++count) {
    HMC_ASSIGN(Chunk chunk, receiveChunk(peer, number, slot, deadline));
    if (!fits(received, chunk.size, into.size)) {
      Status small =
          error(Code::outOfRange, "{} sends more than the {} bytes that there is room for",
                peer.title(), into.size);
      sendGrant(peer, {Word::refused, number, 0, small.message()}, deadline);
      return small;
    }
    HMC_TRY(copy(into.slice(received, chunk.size),
                 buffer.region().slice(receiveSlot(count, slot), chunk.size)));
    received += chunk.size;
    HMC_TRY(sendGrant(peer, {Word::taken, number, 0, ""}, deadline));
    if (chunk.last) return received;
  }
}

}  // namespace hmc
