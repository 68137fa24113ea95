#include "fakes/fake_verbs.h"

#include <cerrno>

#include "base/dynamic_library.h"

namespace hmc::test {

namespace {

// C functions have no object: the one that is alive.
FakeVerbs* fake = nullptr;

ibv_device devices[2];
ibv_device* list[] = {&devices[0], &devices[1], nullptr};

ibv_device** getDeviceList(int* count) {
  *count = 2;
  return list;
}
void freeDeviceList(ibv_device**) {}
const char* getDeviceName(ibv_device* device) {
  return device == &devices[0] ? "fake0" : "fake1";
}
ibv_context* openDevice(ibv_device*) {
  auto* context = new ibv_context{};
  context->async_fd = -1;
  return context;
}
int closeDevice(ibv_context* context) {
  delete context;
  return 0;
}
int queryDevice(ibv_context*, ibv_device_attr* attributes) {
  attributes->max_mr_size = uint64_t{1} << 40;
  return 0;
}
ibv_pd* allocPd(ibv_context* context) {
  return new ibv_pd{context, 0};
}
int deallocPd(ibv_pd* pd) {
  delete pd;
  return 0;
}
ibv_mr* make(ibv_pd* pd, void* address, size_t length, int access) {
  ++fake->registered;
  fake->lastAccess = access;
  const auto number = static_cast<uint32_t>(fake->registered);
  return new ibv_mr{pd->context, pd, address, length, 0, 100 + number, 200 + number};
}
ibv_mr* regMr(ibv_pd* pd, void* address, size_t length, int access) {
  // The byte that every NIC has for itself.
  const bool ours = length == 1;
  errno = fake->hostReadOnly && (access & IBV_ACCESS_LOCAL_WRITE) ? EFAULT : fake->hostError;
  return errno == 0 || ours ? make(pd, address, length, access) : nullptr;
}
ibv_mr* regDmabufMr(ibv_pd* pd, uint64_t, size_t length, uint64_t iova, int fd, int access) {
  fake->lastDmabuf = fd;
  errno = fake->dmabufError;
  return errno == 0 ? make(pd, reinterpret_cast<void*>(iova), length, access) : nullptr;
}
int deregMr(ibv_mr* mr) {
  if (fake) ++fake->deregistered;
  delete mr;
  return 0;
}

}  // namespace

FakeVerbs::FakeVerbs() {
  fake = this;
}

FakeVerbs::~FakeVerbs() {
  fake = nullptr;
}

std::unique_ptr<verbs::Nics> FakeVerbs::open(int count) {
  auto library = std::make_shared<verbs::Library>(*DynamicLibrary::open("libc.so.6"));
  library->getDeviceList = getDeviceList;
  library->freeDeviceList = freeDeviceList;
  library->getDeviceName = getDeviceName;
  library->openDevice = openDevice;
  library->closeDevice = closeDevice;
  library->queryDevice = queryDevice;
  library->allocPd = allocPd;
  library->deallocPd = deallocPd;
  library->regMr = regMr;
  library->deregMr = deregMr;
  library->regDmabufMr = hasDmabuf ? regDmabufMr : nullptr;
  auto nics = std::make_unique<verbs::Nics>();
  for (int i = 0; i < count; ++i) {
    verbs::Port port;
    port.device = getDeviceName(&devices[i]);
    nics->push_back(*verbs::Nic::open(library, port));
  }
  registered = deregistered = 0;
  return nics;
}

}  // namespace hmc::test
