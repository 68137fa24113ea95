#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "fakes/fake_accelerator.h"

namespace hmc {

// A vendor's runtime library made of host memory: what fake_lib*.cc export under that vendor's
// names. It has a current device for each thread, and is stricter than the real ones: streams and
// events are used with their device current, directions of copies must be true, handles are of
// whole allocations and not for the process that made them, and allocations begin in the middle of
// a page and hold what somebody left there.
class FakeRuntime {
 public:
  struct Options {
    DeviceKind kind;
    const char* visibleDevices;       // the vendor's variable
    size_t pinLimit = ~size_t{0};     // bytes of host memory that a process may register
    size_t space = size_t{64} << 30;  // bytes of each device
    bool asksForPeers = false;        // devices reach each other only after allowPeer()
    bool startsNowhere = false;       // a thread has no device until it uses one
    bool deviceless = false;          // a library on a machine of another vendor's
  };
  enum class Direction { toDevice, toHost, onDevice, betweenDevices };
  struct Event {
    int device;
    std::unique_ptr<DeviceEvent> event;
  };

  explicit FakeRuntime(const Options& options);

  int count() const { return accelerator_.facts().deviceCount(); }
  // "0000:0a:00.0", the same in every process
  std::string pciAddress(int index) const;
  const DeviceUuid& uuid(int index) const;
  Status use(int index);
  // -1: none
  int current() const;
  Status allowPeer(int index);

  Result<void*> allocate(size_t size);
  Status release(void* ptr);
  size_t space() const { return options_.space; }
  size_t free();
  // The allocation around a pointer.
  Result<Region> locate(const void* ptr);

  Result<void*> createStream();
  Status destroyStream(void* stream);
  Status synchronize();
  Status zero(void* ptr, size_t size, void* stream);
  Status copy(void* dst, const void* src, size_t size, Direction direction, void* stream);

  Result<Event*> createEvent();
  Status record(Event* event, void* stream);
  Status wait(void* stream, Event* event);

  Result<uint64_t> exportMemory(void* ptr);
  Status withdraw(uint64_t handle);
  Result<void*> importMemory(uint64_t handle);
  Status close(void* ptr);
  Status closeHandle(uint64_t handle);
  Result<Share> exportDmaBuf(const void* ptr, size_t size);

  Status pin(void* ptr, size_t size);
  Status unpin(void* ptr);

  void failDevice(int index);

 private:
  struct Pin {
    size_t size;
    std::unique_ptr<PinnedMemory> pinned;
  };

  Device device(int index) const { return {options_.kind, index}; }
  Result<DeviceQueue> queueOf(void* stream);
  Status soil(const Region& region);

  const Options options_;
  FakeAccelerator accelerator_;
  std::mutex mutex_;  // guards the tables below
  std::map<void*, int> streams_;
  std::multimap<int, void*> idle_;  // streams that were destroyed, by device
  std::map<void*, Region> allocations_;
  std::map<void*, uint64_t> imports_;
  std::map<uint64_t, Fd> exports_;
  std::map<void*, Pin> pins_;
  std::map<std::pair<int, int>, bool> peers_;
};

// The one of this library, made by the library's own file. Never destroyed: its threads run until
// the process ends.
FakeRuntime& fakeRuntime();

// A vendor's numbers for our codes; success is 0 with all of them.
struct FakeCodes {
  int badArgument;
  int outOfMemory;
  int alreadyRegistered;
  int unsupported;
  int other;
};
int codeOf(const Status& status, const FakeCodes& codes);

// What the library's functions return for a status; made by the library's own file.
int answer(const Status& status);

template <class Value, class Out>
int answer(const Result<Value>& result, Out* out) {
  if (result.ok()) *out = *result;
  return answer(result.status());
}

inline FakeRuntime::Event* eventOf(void* event) {
  return static_cast<FakeRuntime::Event*>(event);
}

}  // namespace hmc

// For what a library exports.
#define HMC_FAKE_EXPORT extern "C" __attribute__((visibility("default")))
