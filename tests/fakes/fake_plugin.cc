// FakeAccelerator as a library for HMC_MEMORY_PLUGIN: programs under test believe that they run on
// a machine with accelerators. HMC_FAKE_KIND names the kind that it plays (cuda), HMC_FAKE_DEVICES
// how many it has (2), HMC_FAKE_VISIBLE_DEVICES which of them this process sees (0,1). Named twice
// in HMC_MEMORY_PLUGIN, with HMC_FAKE_KIND=cuda:hip, it is two vendors.

#include <cstdlib>
#include <cstring>
#include <sstream>

#include "fakes/fake_accelerator.h"
#include "memory/plugin.h"

namespace {

// The kind for the nth call of the entry point.
hmc::DeviceKind wantedKind(int nth) {
  const char* list = std::getenv("HMC_FAKE_KIND");
  std::istringstream names(list ? list : "");
  std::string name;
  for (int i = 0; i <= nth; ++i) std::getline(names, name, ':');
  const hmc::DeviceKind* kind = hmc::findDeviceKind(name);
  return kind ? *kind : hmc::DeviceKind::cuda;
}

}  // namespace

hmc::Backend* hmcMemoryBackend(const char* hmcVersion) {
  if (std::strcmp(hmcVersion, HMC_VERSION) != 0) return nullptr;
  static int calls = 0;  // only ever called by one thread at a time
  hmc::FakeOptions options = hmc::FakeOptions::fromEnvironment();
  options.kind = wantedKind(calls++);
  return new hmc::FakeAccelerator(std::move(options));
}
