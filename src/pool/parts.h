#pragma once

#include <array>
#include <optional>

#include "memory/pending_copy.h"
#include "node/local_memory.h"
#include "node/remote_mapping.h"
#include "pool/copy_state.h"

// The ways in which copies of a batch are under way.
namespace hmc::pool {

// Between memory of ours and a peer's.
class TransferPart final : public PoolCopyPart {
 public:
  // `after` hears of the outcome before the caller does, and may change it.
  using After = std::function<Status(Status)>;
  TransferPart(std::vector<PoolElements> which, Ticket ticket, After after)
      : PoolCopyPart(std::move(which)), ticket_(std::move(ticket)), after_(std::move(after)) {}

  bool done() override { return ticket_.done(); }
  Status wait(Deadline deadline) override {
    const Status outcome = ticket_.wait(deadline.left());
    return ticket_.over() ? after_(outcome) : outcome;
  }
  Status cancel() override { return after_(ticket_.cancel()); }

 private:
  Ticket ticket_;
  const After after_;
};

// Between two memories of ours, one of them a device's.
class DevicePart final : public PoolCopyPart {
 public:
  DevicePart(size_t element, std::unique_ptr<PendingCopy> copy)
      : PoolCopyPart({{element, 1}}), copy_(std::move(copy)) {}

  bool done() override;
  Status wait(Deadline deadline) override;
  // A device cannot be stopped: waits for it.
  Status cancel() override;

 private:
  const std::unique_ptr<PendingCopy> copy_;
  std::optional<Status> outcome_;
};

// Between two peers, neither of whose memory lies here: through buffers of ours, several pieces at
// once.
class RelayPart final : public PoolCopyPart {
 public:
  struct Far {
    std::shared_ptr<RemoteMapping> memory;
    uint64_t offset;
  };
  static constexpr size_t kLanes = 4;
  static constexpr size_t kPiece = size_t{1} << 20;
  static constexpr size_t kBuffer = kLanes * kPiece;

  // `buffer` has kBuffer bytes.
  RelayPart(size_t element, Far from, Far to, uint64_t size, std::shared_ptr<LocalMemory> buffer);

  bool done() override;
  Status wait(Deadline deadline) override;
  Status cancel() override;

 private:
  // A piece that is fetched, then sent.
  struct Lane {
    std::optional<Ticket> ticket;
    bool sending = false;
    uint64_t offset = 0;
    uint64_t size = 0;
  };
  void begin(size_t lane);
  void advance(size_t lane);
  void fail(const Status& why);

  const Far from_;
  const Far to_;
  const uint64_t size_;
  const std::shared_ptr<LocalMemory> buffer_;
  std::array<Lane, kLanes> lanes_;
  uint64_t next_ = 0;
  Status failed_;
};

}  // namespace hmc::pool
