#include "memory/staging_buffer.h"

#include <mutex>
#include <vector>

#include "base/error.h"

namespace hmc {

namespace {

struct Buffers {
  static constexpr size_t kMostIdle = 2;
  std::mutex mutex;
  std::vector<std::unique_ptr<StagingBuffer>> idle;       // guarded by mutex
  std::vector<std::unique_ptr<StagingBuffer>> abandoned;  // guarded by mutex
};

// Never destroyed: vendors' runtimes may be gone when this would unpin.
Buffers& all() {
  static auto* instance = new Buffers;
  return *instance;
}

}  // namespace

Result<std::unique_ptr<StagingBuffer>> StagingBuffer::create(size_t size) {
  void* ptr = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (ptr == MAP_FAILED) return errnoStatus(fmt::format("map {} bytes to stage copies", size));
  return std::unique_ptr<StagingBuffer>(new StagingBuffer(Mapping(ptr, size)));
}

void StagingBuffer::abandon(std::unique_ptr<StagingBuffer> buffer) {
  std::lock_guard lock(all().mutex);
  all().abandoned.push_back(std::move(buffer));
}

Result<BorrowedBuffer> borrowBuffer() {
  {
    std::lock_guard lock(all().mutex);
    auto& buffers = all().idle;
    if (!buffers.empty()) {
      BorrowedBuffer last(buffers.back().release());
      buffers.pop_back();
      return last;
    }
  }
  HMC_ASSIGN(auto made, StagingBuffer::create(kBorrowedSize));
  return BorrowedBuffer(made.release());
}

void GiveBack::operator()(StagingBuffer* buffer) const {
  std::unique_ptr<StagingBuffer> ours(buffer);
  std::lock_guard lock(all().mutex);
  if (all().idle.size() < Buffers::kMostIdle) all().idle.push_back(std::move(ours));
}

}  // namespace hmc
