#pragma once

#include <mutex>
#include <string>
#include <unordered_map>

#include "hmc/trace.h"
#include "transfer/transfer.h"

namespace hmc {

// Tells a TraceHook what happens to the transfers of one engine. Hears of their ends in the place
// of `next`, and passes them on. Safe from any thread.
class Tracer final : public CompletionObserver {
 public:
  Tracer(TraceHook hook, std::string transport, CompletionObserver& next)
      : hook_(hook), transport_(std::move(transport)), next_(next) {}

  // Before anything of it is posted.
  void start(const Transfer& transfer);
  void post(uint64_t id, uint64_t bytes);
  void onComplete(uint64_t id, Code code) override;

 private:
  // The transfer may be gone when it ends, and its peer, too.
  struct Record {
    std::string peer;
    OpKind kind;
    uint64_t bytes;
  };
  void tell(TraceEvent::Step step, uint64_t id, const Record& record, uint64_t bytes,
            Code code) const;

  const TraceHook hook_;
  const std::string transport_;
  CompletionObserver& next_;
  std::mutex mutex_;
  std::unordered_map<uint64_t, Record> records_;  // guarded by mutex_: of what has not ended
};

// Writes a line to standard error for every step: what HMC_TRACE=stderr asks for.
TraceHook traceToStderr();

}  // namespace hmc
