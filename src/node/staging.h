#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "control/channel.h"
#include "memory/copy.h"
#include "memory/device_pins.h"
#include "memory/pending_copy.h"
#include "transfer/far_stage.h"
#include "transfer/stage.h"
#include "transport/transport.h"

namespace hmc {

// What peers ask of each other about staging (Channel::call).
inline constexpr uint16_t kOpenStage = 5;
inline constexpr uint16_t kCopySlot = 12;  // 6 was an earlier form

// Host memory for one peer and one transport: the peer moves bytes in and out of its slots where
// the transport cannot reach the memory that they are meant for, and asks us to copy the rest of
// the way. The other side is StagedRegion.
struct StageHost {
  static constexpr uint32_t kSlots = 16;
  static Result<std::shared_ptr<StageHost>> create(Transport& transport);
  ~StageHost();

  Region slot(uint32_t index) const {
    return host.slice(index * StagePool::kSlotSize, StagePool::kSlotSize);
  }
  // Pins the slots for that kind, once. Where they cannot be pinned, copies are slower. One thread
  // at a time.
  void pinFor(Backend& backend) { pins.pin(host, backend); }

  Region host;
  DevicePins pins;
  std::unique_ptr<Registration> registration;
  // A copy from or to that slot is under way. One at a time, so that a peer cannot pile them up.
  std::array<std::atomic<bool>, kSlots> copying{};
};

// Copies between slots and devices that peers have asked for. The control thread starts them; a
// thread of their own asks the devices whether they are done. A device that is stuck holds up
// nobody else. Safe from any thread.
class SlotCopies {
 public:
  // Starts that thread, once; before the first add().
  Status prepare();
  struct Copy {
    std::shared_ptr<StageHost> stage;    // of the slot
    uint32_t slot;                       // StageHost::copying is set, until it is answered
    std::shared_ptr<const void> memory;  // keeps it from being taken back
    std::unique_ptr<PendingCopy> pending;
    control::Channel::Answered reply;
    Deadline limit = kCopyTimeout;
  };
  void add(Copy copy);
  // Waits until every device is done, or counts as stuck.
  ~SlotCopies() = default;

 private:
  void run(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any wanted_;
  std::vector<Copy> added_;  // guarded by mutex_: not yet seen by the thread
  std::jthread thread_;      // last: uses the rest
};

// The answer to kOpenStage.
struct StageOffer {
  std::string key;
  uint32_t slots = 0;

  std::string encode() const;
  static Result<StageOffer> decode(std::string_view bytes);
};

// The request of kCopySlot: blocks that lie in a slot one behind the other from its beginning on
// (`localOffset`), to their places in the region (`remoteOffset`) for a put, back for a get.
struct SlotCopy {
  OpKind kind = OpKind::put;
  std::string transport;
  uint32_t slot = 0;
  std::string region;
  uint64_t number = 0;  // LocalMemory::number(): the name may stand for another memory by now
  std::vector<Block> blocks;

  std::string encode() const;
  // What it answers fits the slot. Whether it fits the region is for the caller to check.
  static Result<SlotCopy> decode(std::string_view bytes);
  uint64_t bytes() const { return blocks.back().localOffset + blocks.back().size; }
};

// Which of the slots that a peer keeps for us, for one transport, are in use: shared by all regions
// that are staged there. Safe from any thread.
class FarSlots {
 public:
  explicit FarSlots(uint32_t count);

  std::optional<uint32_t> take();
  void give(uint32_t slot);

 private:
  std::mutex mutex_;
  std::vector<uint32_t> free_;  // guarded by mutex_
};

// One region of a peer that a transport reaches through slots only. The other side is
// StageHost.
class StagedRegion final : public FarStage {
 public:
  struct What {
    std::string transport;
    std::string region;
    uint64_t number = 0;  // LocalMemory::number()
  };
  StagedRegion(std::shared_ptr<control::Channel> channel, What what,
               std::shared_ptr<FarSlots> slots, std::unique_ptr<RemoteMemory> memory)
      : channel_(std::move(channel)),
        what_(std::move(what)),
        slots_(std::move(slots)),
        memory_(std::move(memory)) {}

  const RemoteMemory& slots() const override { return *memory_; }
  std::optional<uint32_t> take() override { return slots_->take(); }
  void give(uint32_t slot) override { slots_->give(slot); }
  void copy(OpKind kind, uint32_t slot, std::span<const Block> blocks,
            Completion& completion) override;

 private:
  const std::shared_ptr<control::Channel> channel_;
  const What what_;
  const std::shared_ptr<FarSlots> slots_;
  const std::unique_ptr<RemoteMemory> memory_;
};

}  // namespace hmc
