#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "transport/mapped_copy.h"

namespace hmc::ipc {

// How many of our cores have nothing to do, and the same for a number of cores and what
// /proc/loadavg says: "0.52 0.58 0.59 2/389 90".
size_t idleCoresNow();
size_t idleCores(size_t ours, const std::string& loadavg);

// Copies large host memory on the caller's core and on cores that are idle at the moment: one core
// does not reach the memory's bandwidth. Its threads start with the first copy that can use them,
// and sleep in between. Safe from any thread; one copy at a time gets help.
class Copiers {
 public:
  // Below this, waking a helper takes longer than it saves.
  static constexpr size_t kWorthwhile = size_t{16} << 20;

  // `idle` says how many cores have nothing to do.
  explicit Copiers(std::function<size_t()> idle = idleCoresNow) : idle_(std::move(idle)) {}
  ~Copiers();

  // Goes on as long as that says so; it is asked before every piece, by whoever copies it.
  using Allowed = std::function<bool()>;
  static constexpr size_t kPiece = size_t{256} << 10;

  // Finished when it returns. False when it was not allowed to go on, and parts are missing.
  bool run(const MappedCopy& copy, const Allowed& allowed) {
    if (copy.size < kWorthwhile) return copyAlone(copy, allowed);
    return copyLarge(copy, allowed);
  }

 private:
  static bool copyAlone(const MappedCopy& copy, const Allowed& allowed);
  bool copyLarge(const MappedCopy& copy, const Allowed& allowed);
  bool startHelper();  // with mutex_
  void help(const std::stop_token& stop);
  void takePieces();

  const std::function<size_t()> idle_;
  std::mutex turn_;  // held by the caller whose copy is helped
  // The copy. Written by the holder of turn_ while nobody helps.
  const MappedCopy* copy_ = nullptr;
  const Allowed* allowed_ = nullptr;
  std::atomic<size_t> next_{0};       // where the next piece begins
  std::atomic<bool> refused_{false};  // allowed_ said no

  std::mutex mutex_;  // guards what follows
  std::condition_variable_any wanted_;
  std::condition_variable over_;
  size_t places_ = 0;   // how many may still join
  size_t helping_ = 0;  // how many have, and are not done
  std::vector<std::jthread> threads_;
};

}  // namespace hmc::ipc
