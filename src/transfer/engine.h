#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "transfer/poller.h"
#include "transfer/poster.h"
#include "transfer/progress_thread.h"
#include "transfer/transfer.h"

namespace hmc {

class TransferState;

// Moves bytes over one transport: cuts transfers into pieces, keeps the link's window full, stages
// device memory through the host where it must, at either end, waits, and cancels. Nobody else
// posts to the transport's links. Safe from any thread.
//
// The layers, each of which knows those before it alone: Transfer (what is left to do), Staging and
// Poster (post it), ProgressThread (posts and polls for those who do not wait), Engine, and
// TransferState, the handle of a transfer's owner.
class Engine {
 public:
  // With a hook, every step of every transfer is traced, which costs time; without one, nothing.
  explicit Engine(std::unique_ptr<Transport> transport, TraceHook trace = {});
  ~Engine() { progressThread_.stop(); }

  Transport& transport() const { return *transport_; }
  bool traced() const { return tracer_ != nullptr; }

  // Can post() read and write memory of this kind?
  bool touches(DeviceKind kind) const;

  // One contiguous transfer, finished when it returns. The ranges have been checked. After the
  // timeout the transfer is cancelled, which may take the lease longer.
  Status run(OpKind kind, const Route& route, uint64_t localOffset, uint64_t remoteOffset,
             size_t size, std::chrono::nanoseconds timeout);

  // The first part of the pieces has been checked. `keep` holds alive whatever the route points at.
  // With an event, the transfer is not posted before it has passed.
  std::shared_ptr<TransferState> start(OpKind kind, const Route& route, Pieces pieces,
                                       std::vector<std::shared_ptr<const void>> keep,
                                       std::shared_ptr<DeviceEvent> after = nullptr);
  Status wait(Transfer& transfer, Deadline deadline);
  bool test(Transfer& transfer);
  Status cancel(Transfer& transfer);

  // Moves watched transfers along while nobody waits for them.
  ProgressThread& progressThread() { return progressThread_; }

  // A link was closed by another thread: whoever waits looks again.
  void kick() { poller_.kick(); }

 private:
  Status runSlowly(OpKind kind, const Route& route, const Strided& piece, Deadline deadline);
  template <class Wait>
  void endOrClose(const Route& route, const Completion& completion, const char* what, Wait wait);

  std::atomic<uint64_t> lastId_{0};
  // These outlive the transport, whose threads tell them of ends.
  ProgressThread progressThread_;
  const std::unique_ptr<Tracer> tracer_;  // none when nothing is traced
  CompletionObserver* const observer_;    // the first of those two that there is
  const std::unique_ptr<Transport> transport_;
  Poller poller_;
  const OpPoster ops_;
  Poster poster_;
};

// A transfer that an Engine has started, as its owner holds it.
class TransferState final : public Transfer {
 public:
  template <class... Args>
  explicit TransferState(Engine& engine, Args&&... args)
      : Transfer(std::forward<Args>(args)...), engine_(engine) {}
  Engine& engine() const { return engine_; }

 private:
  Engine& engine_;
};

}  // namespace hmc
