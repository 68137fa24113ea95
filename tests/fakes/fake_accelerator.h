#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fakes/fake_queue.h"
#include "memory/backend.h"
#include "memory/cpu/mapping.h"
#include "memory/cpu/shared_memory.h"

namespace hmc {

struct FakeOptions {
  DeviceKind kind = DeviceKind::cuda;  // which accelerator it plays
  int deviceCount = 2;
  std::chrono::milliseconds delay{20};  // how long a copy on a stream idles when nobody waits
};

// An accelerator made of host memory, as strict as the real ones: the processor that touches its
// addresses directly crashes, because they are reserved and never mapped; the bytes live elsewhere.
class FakeAccelerator final : public Backend {
 public:
  explicit FakeAccelerator(FakeOptions options = {});
  ~FakeAccelerator() override;

  Result<Region> allocate(int index, size_t size) override;
  Status release(void* ptr) override;
  Status copy(const Region& dst, const Region& src, const Stream* stream) override;
  Status wait(const Stream& stream) override;
  Result<Region> locate(const void* ptr) override;
  Result<Share> share(const Region& region) override;
  Result<Region> attach(const Share& share) override;
  Status detach(const Region& region) override;

  // A stream as a user of the vendor's runtime would create it.
  Result<Stream> createStream(int index);

  // The nth coming call of that sort (1: the next one) fails with this Status and does nothing.
  enum class Call { allocate, copy, share, attach };
  void failNext(Call call, Status why, int nth = 1);

  // Allocations and attachments that nobody gave back.
  size_t live();

 private:
  struct Block {
    Mapping address;  // what callers see; reserved, without access
    Mapping bytes;
    char* first;  // the block's first byte within `bytes`
    Fd fd;        // not set for attached blocks
    size_t size;
    int index;
    bool attached;
  };
  struct Fault {
    Status why;
    int countdown = 0;  // 0: none
  };
  using Blocks = std::map<const char*, Block>;

  Status checkIndex(int index) const;
  Status checkCopy(const Region& dst, const Region& src) const;
  Status fault(Call call);
  Result<Region> add(Block block);
  void drainAll();
  Status remove(const void* ptr, bool attached);
  // Called with mutex_ held.
  Blocks::const_iterator around(const void* ptr) const;
  // Where the bytes of a region are, on the host or on one of our devices.
  Result<char*> bytesOf(const Region& region);
  Result<FakeQueue*> queueOf(const Stream& stream);

  const FakeOptions options_;
  std::mutex mutex_;  // guards the tables below, not the memory that they describe
  Blocks blocks_;     // by address
  std::map<Call, Fault> faults_;
  std::map<void*, std::pair<int, std::unique_ptr<FakeQueue>>>
      streams_;                                     // of createStream(), for ever
  std::vector<std::unique_ptr<FakeQueue>> queues_;  // one per device; never changes
};

}  // namespace hmc
