#include "memory/staging_buffer.h"

#include <mutex>
#include <vector>

#include "base/error.h"

namespace hmc {

namespace {

struct IdleBuffers {
  static constexpr size_t kMost = 2;
  std::mutex mutex;
  std::vector<std::unique_ptr<StagingBuffer>> buffers;  // guarded by mutex
};

// Never destroyed: vendors' runtimes may be gone when this would unpin.
IdleBuffers& idle() {
  static auto* instance = new IdleBuffers;
  return *instance;
}

}  // namespace

Result<std::unique_ptr<StagingBuffer>> StagingBuffer::create(size_t size) {
  void* ptr = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (ptr == MAP_FAILED) return errnoStatus(fmt::format("map {} bytes to stage copies", size));
  return std::unique_ptr<StagingBuffer>(new StagingBuffer(Mapping(ptr, size)));
}

Result<BorrowedBuffer> BorrowedBuffer::take() {
  {
    std::lock_guard lock(idle().mutex);
    auto& buffers = idle().buffers;
    if (!buffers.empty()) {
      auto last = std::move(buffers.back());
      buffers.pop_back();
      return BorrowedBuffer(std::move(last));
    }
  }
  HMC_ASSIGN(auto made, StagingBuffer::create(kSize));
  return BorrowedBuffer(std::move(made));
}

BorrowedBuffer::~BorrowedBuffer() {
  if (!buffer_) return;
  std::lock_guard lock(idle().mutex);
  if (idle().buffers.size() < IdleBuffers::kMost) idle().buffers.push_back(std::move(buffer_));
}

}  // namespace hmc
