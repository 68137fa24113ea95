#include "memory/backends.h"

#include <array>
#include <atomic>
#include <mutex>
#include <sstream>

#include "base/environment.h"
#include "base/error.h"
#include "base/log.h"
#include "memory/cpu/cpu_backend.h"
#include "memory/plugin.h"

namespace hmc {

namespace {

using Loader = Result<Backend*> (*)();

// One row per kind of accelerator that this build knows.
struct Row {
  DeviceKind kind;
  const char* product;
  Loader load;  // null: not in this build
};
constexpr Row kRows[] = {
    {DeviceKind::cuda, "CUDA", nullptr},    {DeviceKind::hip, "ROCm", nullptr},
    {DeviceKind::cnrt, "Neuware", nullptr}, {DeviceKind::acl, "Ascend", nullptr},
    {DeviceKind::musa, "MUSA", nullptr},
};
constexpr size_t kKinds = std::size(kRows);

// A kind's backend, or why there is none, found out once.
struct Slot {
  std::once_flag once;
  Status why;  // written within `once`
  // Set within `once`; deviceOf() looks at it without waiting for others who load.
  std::atomic<Backend*> backend{nullptr};
};

struct Plugins {
  std::vector<Plugin> loaded;
  std::string failures;  // why the others are not there
};

Plugins* loadPlugins() {
  auto* plugins = new Plugins;
  std::istringstream paths(valueOf(variable::kMemoryPlugin).value_or(""));
  for (std::string path; std::getline(paths, path, ':');) {
    if (path.empty()) continue;
    auto plugin = loadPlugin(path);
    if (plugin.ok()) {
      plugins->loaded.push_back(*std::move(plugin));
    } else {
      plugins->failures += "; HMC_MEMORY_PLUGIN: " + plugin.status().message();
    }
  }
  return plugins;
}

// Never destroyed: threads may still copy while the process exits.
const Plugins& plugins() {
  static const Plugins* instance = loadPlugins();
  return *instance;
}

Result<Backend*> notInThisBuild(const Row& row) {
  return error(Code::unsupported,
               "this build has no {} backend ({} memory); name a library that provides one in "
               "HMC_MEMORY_PLUGIN, or use host memory",
               row.product, deviceKindName(row.kind));
}

Result<Backend*> load(const Row& row) {
  for (const Plugin& plugin : plugins().loaded) {
    if (plugin.backend->facts().kind == row.kind) return plugin.backend;
  }
  auto built = row.load ? row.load() : notInThisBuild(row);
  if (built.ok()) return built;
  return Status(built.status().code(), built.status().message() + plugins().failures);
}

std::array<Slot, kKinds>& slots() {
  static auto* instance = new std::array<Slot, kKinds>;
  return *instance;
}

Result<Backend*> find(size_t row) {
  Slot& slot = slots()[row];
  std::call_once(slot.once, [&] {
    auto loaded = load(kRows[row]);
    if (loaded.ok()) {
      slot.backend.store(*loaded, std::memory_order_release);
    } else {
      slot.why = loaded.status();
    }
  });
  if (Backend* backend = slot.backend.load(std::memory_order_acquire)) return backend;
  return slot.why;
}

}  // namespace

Backend& hostBackend() {
  static auto* instance = new CpuBackend;
  return *instance;
}

Result<Backend*> findBackend(DeviceKind kind) {
  if (kind == DeviceKind::cpu) return &hostBackend();
  for (size_t row = 0; row < kKinds; ++row) {
    if (kRows[row].kind == kind) return find(row);
  }
  return error(Code::invalidArgument, "there is no kind of device number {}",
               static_cast<int>(kind));
}

Result<Backend*> findBackend(const Device& device) {
  HMC_ASSIGN(Backend * backend, findBackend(device.kind));
  int count = backend->facts().deviceCount;
  if (device.index < 0 || device.index >= count) {
    return error(Code::invalidArgument, "device {} does not exist: {} has {} {}", device.toString(),
                 backend->facts().name, count, count == 1 ? "device" : "devices");
  }
  return backend;
}

std::vector<Backend*> accelerators() {
  std::vector<Backend*> found;
  for (size_t row = 0; row < kKinds; ++row) {
    auto backend = find(row);
    if (backend.ok() && (*backend)->facts().deviceCount > 0) found.push_back(*backend);
  }
  // Who asks for "whatever there is" gets no Status, so a plugin that was named and is not there
  // would go unseen.
  static std::once_flag warned;
  std::call_once(warned, [] {
    if (!plugins().failures.empty()) logWarn("no accelerator{}", plugins().failures);
  });
  return found;
}

Device deviceOf(const void* ptr) {
  for (Slot& slot : slots()) {
    Backend* backend = slot.backend.load(std::memory_order_acquire);
    if (!backend) continue;
    auto region = backend->locate(ptr);
    if (region.ok()) return region->device;
  }
  return Device{};
}

}  // namespace hmc
