#pragma once

#include "base/dynamic_library.h"
#include "memory/backend.h"

namespace hmc {

// What we need of a vendor's runtime library: these all have a current device for each thread,
// streams, events and IPC handles. RuntimeBackend makes a Backend of it. The calls are safe from
// any thread and concern the device that use() made current there, unless they say otherwise.
// Streams, events and handles are the vendor's own.
class Runtime : public Interface {
 public:
  struct Space {
    size_t free;
    size_t total;
  };

  // Makes a device current in this thread. What was current before goes back to restore().
  virtual Result<uintptr_t> use(int index) = 0;
  virtual void restore(uintptr_t before) = 0;

  // exhausted when the device has no such memory left.
  virtual Result<void*> allocate(size_t size) = 0;
  virtual Status release(void* ptr) = 0;
  virtual Result<Space> space() = 0;
  // The allocation around a pointer, on whichever device; notFound when it is no device memory.
  virtual Result<Region> locate(const void* ptr) = 0;

  virtual Result<void*> createStream() = 0;
  // Nothing is enqueued there any more.
  virtual void destroyStream(void* stream) = 0;
  // Waits for all streams of the device.
  virtual Status synchronize() = 0;
  // These two enqueue and return.
  virtual Status zero(void* ptr, size_t size, void* stream) = 0;
  virtual Status copy(const CopyPiece& piece, const Device& to, const Device& from,
                      void* stream) = 0;

  virtual Result<void*> createEvent() = 0;
  // A stream that still waits for it does so all the same.
  virtual void destroyEvent(void* event) = 0;
  virtual Status record(void* event, void* stream) = 0;
  virtual Result<bool> hasPassed(void* event) = 0;
  virtual Status wait(void* stream, void* event) = 0;

  // A handle of an allocation for importMemory() in another process; not in this one.
  virtual Result<std::string> exportMemory(const Region& whole) = 0;
  // Before the allocation is released; nobody opens the handle any more.
  virtual void withdraw(const std::string& handle) = 0;
  virtual Result<void*> importMemory(const std::string& handle) = 0;
  virtual void close(void* ptr, const std::string& handle) = 0;
  // Sets `fd` and `offset`, as ShareFor::nic wants them.
  virtual Status exportDmaBuf(const Region& region, Share& share) = 0;

  // alreadyExists when some of it is pinned, exhausted when the vendor's limit is reached.
  virtual Status pin(const Region& host) = 0;
  virtual void unpin(const Region& host) = 0;
};

// One device is current in this thread as long as this lives.
class UsedDevice {
 public:
  UsedDevice(Runtime& runtime, int index) : runtime_(runtime), before_(runtime.use(index)) {}
  ~UsedDevice() {
    if (before_.ok()) runtime_.restore(*before_);
  }
  UsedDevice(const UsedDevice&) = delete;
  UsedDevice& operator=(const UsedDevice&) = delete;
  const Status& status() const { return before_.status(); }

 private:
  Runtime& runtime_;
  const Result<uintptr_t> before_;
};

// One of these libraries: one that the process has loaded already, else the first that can be
// loaded. It stays, because its threads run until the process ends. The sentence names all of them
// and ends with `fix`.
Result<DynamicLibrary> openRuntime(std::vector<std::string> libraries, const char* fix);
// Has this process loaded one of them?
bool isAnyLoaded(const std::vector<std::string>& libraries);

// A function of such a library; unsupported when the library is too old to have it.
template <class Function>
Status lookUp(const DynamicLibrary& library, const std::string& name, Function*& function) {
  auto found = library.symbol<Function>(name.c_str());
  if (!found.ok()) {
    return Status(Code::unsupported,
                  found.status().message() + "; install a newer version of the vendor's runtime");
  }
  function = *found;
  return Status();
}

// For vendors whose devices have no UUID: one made of the PCI address ("0000:3b:00.0"), the same in
// every process of the machine.
DeviceUuid uuidOfPciAddress(std::string_view address);

}  // namespace hmc
