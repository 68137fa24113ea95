#include "transport/verbs/words.h"

#include <bit>
#include <cerrno>

#include "base/error.h"

namespace hmc::verbs {

namespace {

constexpr int kControlEntries = 128;  // both directions

uint64_t pack(const Word& word) {
  return static_cast<uint64_t>(word.kind) | uint64_t{word.channel} << 8 |
         uint64_t{word.packet} << 32;
}

Word unpack(uint64_t bytes) {
  return {static_cast<Word::Kind>(bytes & 0xff), static_cast<uint8_t>(bytes >> 8),
          static_cast<uint32_t>(bytes >> 32)};
}

// Little-endian on the wire, as everything of ours.
uint64_t swapIfBig(uint64_t bytes) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  return __builtin_bswap64(bytes);
#else
  return bytes;
#endif
}

}  // namespace

Result<std::unique_ptr<Words>> Words::create(const Nic& nic, size_t nicIndex,
                                             CompletionQueues& queues) {
  HMC_ASSIGN(ibv_cq * queue, queues.reserve(kControlEntries));
  auto pair = QueuePair::create(nic, queue, {kDepth, kDepth, 0}, QueuePair::Serves::nothing);
  if (!pair.ok()) {
    queues.release(queue, kControlEntries);
    return pair.status();
  }
  std::unique_ptr<Words> words(new Words(nicIndex, queues, queue, *std::move(pair)));
  const Library& library = nic.library();
  words->key_ =
      Handle<ibv_mr>(library.regMr(nic.pd(), words->memory_.get(), kPage, IBV_ACCESS_LOCAL_WRITE),
                     library.deregMr);
  if (!words->key_) {
    return errnoStatus(fmt::format("registering a link's words with {}", nic.port().name()));
  }
  return words;
}

Words::Words(size_t nicIndex, CompletionQueues& queues, ibv_cq* queue, QueuePair pair)
    : nicIndex_(nicIndex),
      queues_(queues),
      queue_(queue),
      pair_(std::move(pair)),
      firstPacket_(randomPacketNumber()) {
  static_assert(kControlEntries == 2 * kDepth && kControlEntries * sizeof(uint64_t) <= kPage);
  for (size_t i = 0; i < 2 * kDepth; ++i) slots_.push_back({this, i >= kDepth, memory_.get() + i});
  for (size_t i = kDepth; i < 2 * kDepth; ++i) free_.push_back(&slots_[i]);
}

Words::~Words() {
  queues_.release(queue_, kControlEntries);
}

Address::Pair Words::pair() const {
  return {static_cast<uint8_t>(nicIndex_), pair_.number(), firstPacket_};
}

Status Words::connect(const Address::Pair& to, const Address::Place& place) {
  for (size_t i = 0; i < kDepth; ++i) HMC_TRY(receiveInto(slots_[i]));
  return pair_.connect(to, place, firstPacket_);
}

Status Words::receiveInto(Slot& slot) {
  ibv_sge piece{reinterpret_cast<uint64_t>(slot.bytes), sizeof(*slot.bytes), key_->lkey};
  ibv_recv_wr request{};
  request.wr_id = reinterpret_cast<uint64_t>(&slot);
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* refused = nullptr;
  receiving_.fetch_add(1);
  const int failed = ibv_post_recv(pair_.get(), &request, &refused);
  if (failed == 0) return Status();
  receiving_.fetch_sub(1);
  return errnoStatus("receiving a word over RDMA", failed > 0 ? failed : errno);
}

Status Words::send(const Word& word) {
  std::lock_guard lock(mutex_);
  if (free_.empty()) return error(Code::failed, "{} words over RDMA wait to be sent", kDepth);
  Slot& slot = *free_.back();
  *slot.bytes = swapIfBig(pack(word));
  ibv_sge piece{reinterpret_cast<uint64_t>(slot.bytes), sizeof(*slot.bytes), key_->lkey};
  ibv_send_wr request{};
  request.wr_id = reinterpret_cast<uint64_t>(&slot);
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* refused = nullptr;
  sending_.fetch_add(1);
  const int failed = ibv_post_send(pair_.get(), &request, &refused);
  if (failed != 0) {
    sending_.fetch_sub(1);
    return errnoStatus("sending a word over RDMA", failed > 0 ? failed : errno);
  }
  free_.pop_back();
  return Status();
}

Words::Ended Words::handle(const ibv_wc& wc) {
  Slot& slot = *std::bit_cast<Slot*>(wc.wr_id);
  return slot.words->ended(slot, wc);
}

Words::Ended Words::ended(Slot& slot, const ibv_wc& wc) {
  Ended result{this, std::nullopt, Status()};
  if (wc.status != IBV_WC_SUCCESS) {
    result.failure = error(Code::disconnected, "the peer is not reached over RDMA any more: {}{}",
                           nic().library().wcStatusStr(wc.status), nic().trouble());
  }
  if (slot.sends) {
    std::lock_guard lock(mutex_);
    free_.push_back(&slot);
    sending_.fetch_sub(1);
    return result;
  }
  receiving_.fetch_sub(1);
  if (!result.failure.ok()) return result;
  if (wc.byte_len == sizeof(*slot.bytes)) result.heard = unpack(swapIfBig(*slot.bytes));
  result.failure = receiveInto(slot);
  return result;
}

}  // namespace hmc::verbs
