#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "control/channel.h"
#include "transfer/far_stage.h"

namespace hmc {

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
// node/stage_host.h.
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
  void copy(OpKind kind, uint32_t slot, uint64_t offset, size_t size,
            Completion& completion) override;

 private:
  const std::shared_ptr<control::Channel> channel_;
  const What what_;
  const std::shared_ptr<FarSlots> slots_;
  const std::unique_ptr<RemoteMemory> memory_;
};

}  // namespace hmc
