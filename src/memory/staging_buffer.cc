#include "memory/staging_buffer.h"

#include <map>
#include <mutex>
#include <vector>

#include "base/error.h"

namespace hmc {

namespace {

struct Buffers {
  static constexpr size_t kMostBytesIdle = 2 * kBorrowedSize;  // of one size
  using Idle = std::vector<std::unique_ptr<StagingBuffer>>;

  std::mutex mutex;
  std::map<size_t, Idle> idle;                            // guarded by mutex; by their size
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

Result<BorrowedBuffer> borrowBuffer(size_t size) {
  {
    std::lock_guard lock(all().mutex);
    auto& buffers = all().idle[size];
    if (!buffers.empty()) {
      BorrowedBuffer last(buffers.back().release());
      buffers.pop_back();
      return last;
    }
  }
  HMC_ASSIGN(auto made, StagingBuffer::create(size));
  return BorrowedBuffer(made.release());
}

void GiveBack::operator()(StagingBuffer* buffer) const {
  std::unique_ptr<StagingBuffer> ours(buffer);
  std::lock_guard lock(all().mutex);
  auto& idle = all().idle[buffer->size()];
  if ((idle.size() + 1) * buffer->size() <= Buffers::kMostBytesIdle)
    idle.push_back(std::move(ours));
}

}  // namespace hmc
