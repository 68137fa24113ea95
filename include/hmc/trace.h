#pragma once

#include <cstdint>

#include "hmc/status.h"

namespace hmc {

/// One step of a transfer on its way, as NodeOptions::trace hears of it. The strings are valid
/// during the call.
struct TraceEvent {
  /// It was started; a link took pieces of it; it has ended, and no byte of it moves any more.
  enum class Step { start, post, end };
  Step step = Step::start;
  uint64_t transfer = 0;  ///< unique among the transfers of one Node over one transport
  const char* transport = "";
  const char* peer = "";
  bool put = false;      ///< else a get
  uint64_t bytes = 0;    ///< of the whole transfer; for Step::post of the pieces that the link took
  Code code = Code::ok;  ///< how it ended
};

/// A function that is called for every step, from whichever thread takes it and possibly with locks
/// of this library held: it must be quick, safe from any thread, and not call this library.
struct TraceHook {
  void (*call)(void* context, const TraceEvent& event) = nullptr;
  void* context = nullptr;

  /// Whether there is a function to call.
  explicit operator bool() const { return call != nullptr; }
};

}  // namespace hmc
