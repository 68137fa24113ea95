#include "side.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include <fmt/core.h>

#include "demo/demo.h"
#include "hmc/info.h"

namespace hmc::uhm {

namespace {

// The accelerator of this machine, or host memory.
struct Place {
  MemoryType type;
  std::string text;
};

Place choosePlace(bool hostOnly) {
  if (hostOnly) return {MemoryType::CPU, "host memory, as --host says"};
  const MemoryType type = memory_supported();
  for (const MemoryReport& one : memoryReport()) {
    const bool chosen = static_cast<int>(one.kind) + 1 == static_cast<int>(type);
    if (chosen && type != MemoryType::CPU)
      return {type, fmt::format("{}:0 ({})", deviceKindName(one.kind), one.detail)};
  }
  return {MemoryType::CPU, "host memory: this machine has no accelerator"};
}

// Never empty, so that it has an address.
std::vector<char> room(size_t bytes) {
  return std::vector<char>(std::max<size_t>(bytes, 1));
}

std::vector<char> patternOf(size_t bytes, uint64_t round) {
  std::vector<char> pattern = room(bytes);
  tool::fillPattern(pattern.data(), bytes, bytes * 1000003 + round);
  return pattern;
}

}  // namespace

void must(status_t status) {
  if (status != status_t::SUCCESS) throw std::runtime_error(lastError());
}

Side::Side(const Options& options) : options_(options) {
  const Place place = choosePlace(options.hostOnly);
  type_ = place.type;
  where_ = place.text;
  const bool onDevice = options.mode->bufferOnDevice;
  memoryOps_ = std::make_unique<Memory>(0, type_);
  buffer_ = std::make_shared<ConnBuffer>(0, options.buffer, onDevice ? type_ : MemoryType::CPU);
  communicator_ = std::make_unique<Communicator>(buffer_, options.channels);
  must(communicator_->status());
}

Side::~Side() {
  communicator_.reset();
  if (data_) memoryOps_->freeBuffer(data_);
}

char* Side::data(size_t bytes) {
  if (bytes <= dataSize_ && data_) return data_;
  if (data_) must(memoryOps_->freeBuffer(data_));
  data_ = nullptr;
  dataSize_ = std::max<size_t>(bytes, 1);
  void* made = nullptr;
  must(memoryOps_->allocateBuffer(&made, dataSize_));
  data_ = static_cast<char*>(made);
  return data_;
}

void Side::writePattern(size_t bytes, uint64_t round) {
  const std::vector<char> pattern = patternOf(bytes, round);
  must(options_.mode->hasOwnMemory()
           ? memoryOps_->copyHostToDevice(data(bytes), pattern.data(), bytes)
           : buffer_->writeFromCpu(pattern.data(), bytes));
}

uint64_t Side::checkPattern(size_t bytes, uint64_t round) {
  const std::vector<char> expected = patternOf(bytes, round);
  std::vector<char> arrived = room(bytes);
  must(options_.mode->hasOwnMemory()
           ? memoryOps_->copyDeviceToHost(arrived.data(), data(bytes), bytes)
           : buffer_->readToCpu(arrived.data(), bytes));
  auto wrong = std::mismatch(arrived.begin(), arrived.end(), expected.begin()).first;
  return wrong == arrived.end() ? kIntact : static_cast<uint64_t>(wrong - arrived.begin());
}

uint64_t Side::receiveTag() {
  uint64_t tag = 0;
  must(communicator_->ctrlRecv(options_.peerRank, &tag));
  return tag;
}

int runProgram(const char* name, void (*main)(const Options&), const Options& options) {
  try {
    main(options);
    return 0;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    fmt::print(stderr, "{}: {}\n", name, error.what());
    return 1;
  }
}

}  // namespace hmc::uhm
