#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hmc.h"
#include "options.h"

namespace hmc::uhm {

// Throws a std::runtime_error with the library's sentence unless it is SUCCESS.
void must(status_t status);

// What the client tells the server, by tags:
//   its mode, answered by the server's mode
//   for each size: the size and a number of rounds; kNoMore ends it
//   in each round: kReady from the server, the transfer, the size again, and from the server
//   kIntact or the offset of the first wrong byte
constexpr uint64_t kNoMore = UINT64_MAX;
constexpr uint64_t kReady = UINT64_MAX - 1;
constexpr uint64_t kIntact = UINT64_MAX - 2;

// Memory of a mode, and the Communicator around its buffer: one of the two processes.
class Side {
 public:
  explicit Side(const Options& options);
  ~Side();
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  // "cuda:0 (CUDA 13.0)", or why it is not a device.
  const std::string& memory() const { return where_; }
  MemoryType memoryType() const { return type_; }
  Communicator& communicator() { return *communicator_; }
  ConnBuffer& buffer() { return *buffer_; }
  // In a mode that has memory of its own: at least that many bytes of it.
  char* data(size_t bytes);

  // The pattern that a round carries: every byte depends on its position, the size and the round.
  void writePattern(size_t bytes, uint64_t round);
  // kIntact, or the offset of the first byte that is not the pattern's.
  uint64_t checkPattern(size_t bytes, uint64_t round);

  void sendTag(uint64_t tag) { must(communicator_->ctrlSend(options_.peerRank, tag)); }
  uint64_t receiveTag();
  // Half a ConnBuffer, for mode serial.
  size_t piece() const { return (options_.buffer + 1) / 2; }

 private:
  const Options options_;
  MemoryType type_ = MemoryType::CPU;  // of the data
  std::string where_;
  std::unique_ptr<Memory> memoryOps_;
  char* data_ = nullptr;
  size_t dataSize_ = 0;
  std::shared_ptr<ConnBuffer> buffer_;
  std::unique_ptr<Communicator> communicator_;  // goes before what it moves
};

// Runs a program's main part; a failure becomes one line on standard error and exit status 1.
int runProgram(const char* name, void (*main)(const Options&), const Options& options);

}  // namespace hmc::uhm
