#pragma once

#include <map>
#include <mutex>

#include "memory/runtime.h"

namespace hmc {

// Device memory as this process sees it: what it allocated, what it attached, and what others
// allocated with the vendor's runtime. Safe from any thread.
class RuntimeMemory {
 public:
  RuntimeMemory(const Backend& owner, Runtime& runtime);
  ~RuntimeMemory();

  // Not zero-filled.
  Result<Region> allocate(int index, size_t size);
  Result<Region> attach(const Share& share, int index);
  // Nothing uses it any more.
  Status release(const void* ptr);
  Status detach(const Region& region);
  bool isAllocated(const void* ptr);

  Result<Region> locate(const void* ptr);
  Result<Share> share(const Region& region, ShareFor purpose);

 private:
  struct Block : Region {
    void* base;          // what the runtime knows it by
    size_t whole;        // bytes from there on
    std::string handle;  // once it was shared
  };
  // Another process's allocation. Runtimes open a handle once in a process, so all who attach it
  // have this in common.
  struct Opened {
    Opened(Runtime& owner, int device, std::string bytes, void* at)
        : runtime(owner), index(device), handle(std::move(bytes)), base(at) {}
    ~Opened();
    Runtime& runtime;
    const int index;
    const std::string handle;
    void* const base;
  };
  struct Attached : Region {
    std::shared_ptr<Opened> opened;  // null: our own memory, which no runtime opens again
  };

  Result<void*> ask(int index, size_t size);
  // `base`: where the allocation begins for the runtime.
  Result<std::string> handleOf(const Region& whole, const char*& base);
  Result<std::shared_ptr<Opened>> open(int index, const std::string& handle);
  Device device(int index) const { return {owner_.facts().kind, index}; }

  const Backend& owner_;
  Runtime& runtime_;
  const std::string process_;            // says whether a share is our own
  std::mutex mutex_;                     // guards the tables, not the memory
  std::map<const char*, Block> blocks_;  // by first byte
  std::multimap<const char*, Attached> attached_;
  std::map<std::string, std::weak_ptr<Opened>> opened_;  // by handle
};

}  // namespace hmc
