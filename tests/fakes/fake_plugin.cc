// FakeAccelerator as a library for HMC_MEMORY_PLUGIN: programs under test believe that they run on
// a machine with accelerators. HMC_FAKE_KIND names the kind that it plays (cuda), HMC_FAKE_DEVICES
// how many it has (2).

#include <cstdlib>
#include <cstring>

#include "fakes/fake_accelerator.h"
#include "memory/plugin.h"

namespace {

hmc::DeviceKind wantedKind() {
  using hmc::DeviceKind;
  const char* name = std::getenv("HMC_FAKE_KIND");
  for (auto kind : {DeviceKind::hip, DeviceKind::cnrt, DeviceKind::acl, DeviceKind::musa}) {
    if (name && std::strcmp(name, hmc::deviceKindName(kind)) == 0) return kind;
  }
  return DeviceKind::cuda;
}

}  // namespace

hmc::Backend* hmcMemoryBackend(const char* hmcVersion) {
  if (std::strcmp(hmcVersion, HMC_VERSION) != 0) return nullptr;
  hmc::FakeOptions options;
  options.kind = wantedKind();
  if (const char* count = std::getenv("HMC_FAKE_DEVICES")) options.deviceCount = std::atoi(count);
  return new hmc::FakeAccelerator(options);
}
