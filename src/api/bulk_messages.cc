#include "api/bulk_messages.h"

#include "base/codec.h"
#include "base/error.h"

namespace hmc {

namespace {
constexpr uint16_t kLastChunk = 1;  // a flag of kBulkChunk
}  // namespace

Status sendGrant(PeerState& peer, const BulkGrant& grant, Deadline deadline) {
  Writer out;
  out.u8(static_cast<uint8_t>(grant.word)).u64(grant.number).u64(grant.slot).u64(grant.slots);
  out.string(grant.sentence);
  return peer.channel().send(kBulkGrant, 0, out.bytes(), deadline);
}

Result<std::optional<BulkGrant>> receiveGrant(PeerState& peer, uint64_t number, Deadline deadline) {
  using Word = BulkGrant::Word;
  HMC_ASSIGN(const Message message, peer.channel().receive(kBulkGrant, deadline));
  Reader in(message.payload);
  BulkGrant grant;
  grant.word = static_cast<Word>(in.u8());
  grant.number = in.u64();
  grant.slot = in.u64();
  grant.slots = in.u64();
  grant.sentence = in.string();
  HMC_TRY(in.finish("a grant of recvDataFrom"));
  if (grant.word != Word::ready && grant.number != number) return std::optional<BulkGrant>();
  if (grant.word == Word::refused)
    return error(Code::failed, "{} refused the data: {}", peer.title(), grant.sentence);
  if (grant.word == Word::ready && (grant.slot == 0 || grant.slots == 0)) {
    return error(Code::failed, "{} announced {} slots of {} bytes", peer.title(), grant.slots,
                 grant.slot);
  }
  return std::optional(std::move(grant));
}

Status sendChunk(PeerState& peer, const BulkChunk& chunk, Deadline deadline) {
  Writer out;
  out.u64(chunk.number).u64(chunk.size);
  return peer.channel().send(kBulkChunk, chunk.last ? kLastChunk : 0, out.bytes(), deadline);
}

Result<std::optional<BulkChunk>> receiveChunk(PeerState& peer, uint64_t number, size_t slot,
                                              Deadline deadline) {
  HMC_ASSIGN(const Message message, peer.channel().receive(kBulkChunk, deadline));
  Reader in(message.payload);
  BulkChunk chunk;
  chunk.number = in.u64();
  chunk.size = in.u64();
  chunk.last = (message.flags & kLastChunk) != 0;
  HMC_TRY(in.finish("a chunk of sendDataTo"));
  if (chunk.number != number) return std::optional<BulkChunk>();
  if (chunk.size > slot) {
    return error(Code::failed, "{} announced a chunk of {} bytes in a slot of {}", peer.title(),
                 chunk.size, slot);
  }
  return std::optional(chunk);
}

}  // namespace hmc
