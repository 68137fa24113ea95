#include "transfer/engine.h"

#include <algorithm>

#include "base/error.h"
#include "base/fork_guard.h"
#include "transport/check.h"

namespace hmc {

namespace {

// What start() and test() post at most: over some transports that is a copy, and who calls them has
// other work.
constexpr size_t kBytesInPassing = size_t{8} << 20;

Status late(OpKind kind) {
  return error(Code::deadlineExceeded, "the {} did not finish before its deadline", opName(kind));
}

}  // namespace

Engine::Engine(std::unique_ptr<Transport> transport, TraceHook trace)
    : progressThread_(poster_, poller_),
      tracer_(trace ? std::make_unique<Tracer>(trace, transport->facts().name, progressThread_)
                    : nullptr),
      observer_(tracer_ ? static_cast<CompletionObserver*>(tracer_.get()) : &progressThread_),
      transport_(std::move(transport)),
      poller_(*transport_),
      ops_(*transport_, tracer_.get()),
      poster_(*transport_, ops_, poller_) {}

bool Engine::touches(DeviceKind kind) const {
  const auto& kinds = transport_->facts().local;
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

// What is on its way arrives within the lease, or the link goes. The Link's contract: everything
// pending then finishes within another.
template <class Wait>
void Engine::endOrClose(const Route& route, const Completion& completion, const char* what,
                        Wait wait) {
  wait(Deadline(route.lease));
  if (completion.done()) return;
  route.link->close(error(Code::cancelled, "{}, and the peer did not answer within {} ms", what,
                          route.lease.count()));
  poller_.kick();
  while (!completion.done()) wait(Deadline(route.lease));
}

Status Engine::run(OpKind kind, const Route& route, uint64_t localOffset, uint64_t remoteOffset,
                   size_t size, std::chrono::nanoseconds timeout) {
  if (size <= transport_->facts().largest && size <= Poster::kLargestPiece && !route.staged &&
      !route.far && !tracer_) {
    Completion completion(1);
    Op op{kind,
          route.local.at(localOffset),
          route.registration,
          route.remote,
          remoteOffset,
          size,
          &completion};
    if (ops_.post(*route.link, {&op, 1}, 0) == 1) {
      if (completion.done()) return completion.status();
      auto waitUntil = [&](Deadline deadline) {
        do {
          poller_.round(&completion, poller_.kicks(), deadline);
        } while (!completion.done() && !deadline.passed());
      };
      waitUntil(Deadline(timeout));
      if (completion.done()) return completion.status();
      endOrClose(route, completion, "a transfer passed its deadline", waitUntil);
      return completion.status().ok() ? Status() : late(kind);
    }
  }
  return runSlowly(kind, route, {localOffset, 0, remoteOffset, 0, 1, size}, Deadline(timeout));
}

Status Engine::runSlowly(OpKind kind, const Route& route, const Strided& piece, Deadline deadline) {
  Transfer transfer(++lastId_, tracer_.get(), kind, route, Pieces(piece), {});
  if (tracer_) tracer_->start(transfer);
  Status status = wait(transfer, deadline);
  if (status.code() != Code::deadlineExceeded || transfer.done()) return status;
  cancel(transfer);
  return late(kind);
}

std::shared_ptr<TransferState> Engine::start(OpKind kind, const Route& route, Pieces pieces,
                                             std::vector<std::shared_ptr<const void>> keep,
                                             std::shared_ptr<DeviceEvent> after) {
  auto transfer =
      ownedHere(new TransferState(*this, ++lastId_, observer_, kind, route, std::move(pieces),
                                  std::move(keep), std::move(after)));
  if (tracer_) tracer_->start(*transfer);
  if (route.far) poster_.addSlotHolder(*transfer);
  poster_.post(*transfer, Deadline::now(), kBytesInPassing);
  Poster::keepRest(*transfer);
  return transfer;
}

Status Engine::wait(Transfer& transfer, Deadline deadline) {
  for (;;) {
    if (transfer.done()) return transfer.completion.status();
    const uint64_t seen = poller_.kicks();
    const PostResult result = poster_.post(transfer, deadline);
    if (transfer.done()) return transfer.completion.status();
    if (deadline.passed()) return late(transfer.kind);
    bool onDevice = result == PostResult::onDevice;
    // Transfers that nobody waits for may have all slots at the target.
    if (result == PostResult::noFarSlot) onDevice = poster_.moveSlotHolders();
    poller_.round(&transfer.completion, seen, onDevice ? earlier(deadline, kDevicePoll) : deadline);
  }
}

bool Engine::test(Transfer& transfer) {
  if (transfer.done()) return true;
  poster_.post(transfer, Deadline::now(), kBytesInPassing);
  poller_.round(&transfer.completion, poller_.kicks(), Deadline::now());
  return transfer.done();
}

Status Engine::cancel(Transfer& transfer) {
  Poster::stop(transfer, error(Code::cancelled, "the transfer was cancelled"));
  endOrClose(transfer.route, transfer.completion, "a transfer was cancelled",
             [&](Deadline until) { wait(transfer, until); });
  return transfer.completion.status();
}

}  // namespace hmc
