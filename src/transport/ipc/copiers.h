#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace hmc::ipc {

// Copies large host memory on the caller's core and on cores that nobody uses at the moment: one
// core cannot fill the memory's bandwidth. Its threads start with the first copy that can use them,
// and sleep in between. Safe from any thread; one copy at a time is helped.
class Copiers {
 public:
  // Below this, waking somebody up takes longer than he would save.
  static constexpr size_t kWorthwhile = size_t{16} << 20;

  ~Copiers();

  // Finished when it returns.
  void copy(char* dst, const char* src, size_t size);
  // With that many helpers at most, however busy the machine is.
  void copyWith(size_t helpers, char* dst, const char* src, size_t size);

 private:
  void share(size_t helpers, char* dst, const char* src, size_t size);  // with turn_
  bool startHelper();                                                   // with mutex_
  void help(const std::stop_token& stop);
  void takePieces();

  std::mutex turn_;  // held by the caller whose copy is helped
  // The copy. Written by the holder of turn_ while nobody helps.
  char* dst_ = nullptr;
  const char* src_ = nullptr;
  size_t size_ = 0;
  std::atomic<size_t> next_{0};  // where the next piece begins

  std::mutex mutex_;  // guards what follows
  std::condition_variable_any wanted_;
  std::condition_variable over_;
  size_t places_ = 0;   // how many may still join
  size_t helping_ = 0;  // how many have, and are not done
  std::vector<std::jthread> threads_;
};

// How many cores of ours have nothing to do, by what /proc/loadavg says: "0.52 0.58 0.59 2/389 90".
size_t idleCores(size_t ours, const std::string& loadavg);

}  // namespace hmc::ipc
