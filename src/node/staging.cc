#include "node/staging.h"

#include <iterator>

#include "base/codec.h"
#include "base/error.h"
#include "base/thread.h"
#include "memory/backends.h"
#include "transfer/slot_blocks.h"

namespace hmc {

Result<std::shared_ptr<StageHost>> StageHost::create(Transport& transport) {
  auto stage = std::make_shared<StageHost>();
  HMC_ASSIGN(stage->host, hostBackend().allocate(0, kSlots * StagePool::kSlotSize));
  HMC_ASSIGN(stage->registration, transport.registerRegion(stage->host, Access::readWrite));
  return stage;
}

StageHost::~StageHost() {
  registration.reset();
  pins.clear();
  if (host.ptr) hostBackend().release(host.ptr);
}

namespace {

// True when there is nothing left to do for it.
bool finish(const SlotCopies::Copy& copy) {
  const auto passed = copy.pending->passed();
  if (passed.ok() && !*passed && !copy.limit.passed()) return false;
  copy.stage->copying[copy.slot] = false;  // before the peer hears that it may use the slot again
  if (!passed.ok()) {
    copy.reply(passed.status());
  } else if (*passed) {
    copy.reply(std::string());
  } else {
    copy.reply(error(Code::deadlineExceeded, "the peer's device did not finish a copy within {} s",
                     kCopyTimeout.count()));
  }
  return true;
}

}  // namespace

Status SlotCopies::prepare() {
  std::lock_guard lock(mutex_);
  if (thread_.joinable()) return Status();
  HMC_ASSIGN(thread_,
             startThread("hmc-copies", [this](const std::stop_token& stop) { run(stop); }));
  return Status();
}

void SlotCopies::add(Copy copy) {
  if (finish(copy)) return;
  std::lock_guard lock(mutex_);
  added_.push_back(std::move(copy));
  wanted_.notify_all();
}

// Nothing tells that a device is done: vendors' calls that would, block without a deadline.
void SlotCopies::run(const std::stop_token& stop) {
  constexpr int kEagerRounds = 400;
  constexpr std::chrono::microseconds kPollEvery{50};
  std::vector<Copy> pending;
  int rounds = 0;  // since the last news
  std::unique_lock lock(mutex_);
  for (;;) {
    auto news = [&] { return !added_.empty(); };
    if (pending.empty() && !wanted_.wait(lock, stop, news)) return;
    if (rounds > kEagerRounds) wanted_.wait_for(lock, kPollEvery, news);
    if (news()) rounds = 0;
    std::move(added_.begin(), added_.end(), std::back_inserter(pending));
    added_.clear();
    lock.unlock();
    rounds = std::erase_if(pending, finish) > 0 ? 0 : rounds + 1;
    std::this_thread::yield();
    lock.lock();
  }
}

std::string StageOffer::encode() const {
  return Writer().string(key).u32(slots).u64(StagePool::kSlotSize).take();
}

Result<StageOffer> StageOffer::decode(std::string_view bytes) {
  Reader in(bytes);
  StageOffer offer;
  offer.key = in.string();
  offer.slots = in.u32();
  const uint64_t size = in.u64();
  HMC_TRY(in.finish("the peer's offer of slots"));
  constexpr uint32_t kMost = 1024;
  if (offer.slots == 0 || offer.slots > kMost || size != StagePool::kSlotSize) {
    return error(Code::unsupported, "the peer offers {} slots of {} bytes; 1 to {} of {} work",
                 offer.slots, size, kMost, StagePool::kSlotSize);
  }
  return offer;
}

std::string SlotCopy::encode() const {
  Writer out;
  out.u8(static_cast<uint8_t>(kind)).string(transport).u32(slot).string(region).u64(number);
  out.u32(static_cast<uint32_t>(blocks.size()));
  for (const Block& block : blocks)
    out.u64(block.remoteOffset).u32(static_cast<uint32_t>(block.size));
  return out.take();
}

namespace {

// The sizes of the blocks say where each lies in the slot.
Result<std::vector<Block>> readBlocks(Reader& in) {
  constexpr size_t kEncoded = 12;  // bytes of a block
  const uint32_t count = in.u32();
  // Before anything is allocated on the peer's word.
  if (count == 0 || count > SlotBlocks::kMost || in.left() / kEncoded < count) {
    return error(Code::outOfRange,
                 "a request for the copy of {} blocks has {} bytes for them; 1 to {} blocks of {} "
                 "bytes work",
                 count, in.left(), SlotBlocks::kMost, kEncoded);
  }
  std::vector<Block> blocks(count);
  uint64_t end = 0;  // 4096 sizes of 32 bits do not overflow it
  for (Block& block : blocks) {
    block = {end, in.u64(), in.u32()};
    end += block.size;
  }
  if (end > StagePool::kSlotSize) {
    return error(Code::outOfRange, "{} blocks of {} bytes do not fit a slot of {} bytes", count,
                 end, StagePool::kSlotSize);
  }
  return blocks;
}

}  // namespace

Result<SlotCopy> SlotCopy::decode(std::string_view bytes) {
  Reader in(bytes);
  SlotCopy copy;
  const uint8_t kind = in.u8();
  copy.transport = in.string();
  copy.slot = in.u32();
  copy.region = in.string();
  copy.number = in.u64();
  HMC_ASSIGN(copy.blocks, readBlocks(in));
  HMC_TRY(in.finish("the request for a copy"));
  if (kind > static_cast<uint8_t>(OpKind::get)) {
    return error(Code::invalidArgument, "{} is neither put (0) nor get (1)", kind);
  }
  if (copy.slot >= StageHost::kSlots) {
    return error(Code::outOfRange, "there are {} slots, and none has the number {}",
                 StageHost::kSlots, copy.slot);
  }
  copy.kind = static_cast<OpKind>(kind);
  return copy;
}

FarSlots::FarSlots(uint32_t count) {
  for (uint32_t slot = count; slot > 0; --slot) free_.push_back(slot - 1);
}

std::optional<uint32_t> FarSlots::take() {
  std::lock_guard lock(mutex_);
  if (free_.empty()) return std::nullopt;
  const uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

void FarSlots::give(uint32_t slot) {
  std::lock_guard lock(mutex_);
  free_.push_back(slot);
}

void StagedRegion::copy(OpKind kind, uint32_t slot, std::span<const Block> blocks,
                        Completion& completion) {
  const SlotCopy request{kind,         what_.transport, slot,
                         what_.region, what_.number,    {blocks.begin(), blocks.end()}};
  channel_->ask(kCopySlot, request.encode(), [&completion](const Result<std::string>& answer) {
    answer.ok() ? completion.finish() : completion.fail(answer.status());
  });
}

}  // namespace hmc
