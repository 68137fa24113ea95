#include "memory/backends.h"

#include <array>
#include <atomic>
#include <mutex>
#include <sstream>

#include "base/dynamic_library.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/log.h"
#include "memory/cpu/cpu_backend.h"
#include "memory/plugin.h"

namespace hmc {

// Each folder has one: the backend, or which library or driver is missing. CMake lists the folders.
#define HMC_BACKEND(folder) \
  namespace folder {        \
  Result<Backend*> load();  \
  }
HMC_MEMORY_BACKENDS
#undef HMC_BACKEND

namespace {

using Load = Result<Backend*> (*)();

struct Row {
  DeviceKind kind;
  const char* product;
};
constexpr Row kRows[] = {
#define HMC_ROW(kind, product, type, library) {DeviceKind::kind, product},
    HMC_DEVICE_KINDS(HMC_ROW)
#undef HMC_ROW
};

// Null when this build has none.
Load loaderOf([[maybe_unused]] DeviceKind kind) {
#define HMC_BACKEND(folder) \
  if (kind == DeviceKind::folder) return folder::load;
  HMC_MEMORY_BACKENDS;
#undef HMC_BACKEND
  return nullptr;
}

// A kind's backend, or why there is none, found out once.
struct LoadedBackend {
  std::once_flag once;
  Status why;  // written within `once`
  // Set within `once`; loadedBackend() looks at it without waiting for threads that load.
  std::atomic<Backend*> backend{nullptr};
};

struct Plugin {
  DynamicLibrary library;  // has the backend's code, so it outlives it
  Backend* backend;
};
struct Plugins {
  std::vector<Plugin> loaded;
  std::string failures;  // why the others are not there
};

Result<Plugin> loadPlugin(const std::string& path) {
  HMC_ASSIGN(auto opened, DynamicLibrary::open(path));
  HMC_ASSIGN(auto* entry, opened.symbol<decltype(hmcMemoryBackend)>("hmcMemoryBackend"));
  Backend* backend = entry(HMC_VERSION);
  if (!backend) {
    return error(Code::unsupported,
                 "{} provides no memory backend: it was built for another version than {}, or its "
                 "runtime is missing",
                 path, HMC_VERSION);
  }
  if (backend->facts().kind == DeviceKind::cpu) {
    return error(Code::unsupported, "{} provides host memory, which is built in", path);
  }
  return Plugin{std::move(opened), backend};
}

Plugins* readPlugins() {
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
  static const Plugins* instance = readPlugins();
  return *instance;
}

Result<Backend*> load(const Row& row) {
  for (const Plugin& plugin : plugins().loaded) {
    if (plugin.backend->facts().kind == row.kind) return plugin.backend;
  }
  Result<Backend*> built =
      error(Code::unsupported,
            "this build has no {} backend ({} memory); name a library that provides one in "
            "HMC_MEMORY_PLUGIN, or use host memory",
            row.product, deviceKindName(row.kind));
  if (Load loader = loaderOf(row.kind)) built = loader();
  if (built.ok()) return built;
  return Status(built.status().code(), built.status().message() + plugins().failures);
}

// Never destroyed, as the plugins.
LoadedBackend& entryOf(DeviceKind kind) {
  static auto* instance = new std::array<LoadedBackend, kDeviceKindCount>;
  return (*instance)[static_cast<size_t>(kind)];
}

bool isKnown(DeviceKind kind) {
  return static_cast<int>(kind) < kDeviceKindCount;
}

}  // namespace

namespace {
CpuBackend& cpuBackend() {
  static auto* instance = new CpuBackend;
  return *instance;
}
}  // namespace

Backend& hostBackend() {
  return cpuBackend();
}

Result<Region> adoptHostMemory(int fd, size_t size) {
  return cpuBackend().adopt(fd, size);
}

Result<Backend*> findBackend(DeviceKind kind) {
  if (kind == DeviceKind::cpu) return &hostBackend();
  if (!isKnown(kind)) {
    return error(Code::invalidArgument, "there is no kind of device number {}",
                 static_cast<int>(kind));
  }
  LoadedBackend& entry = entryOf(kind);
  std::call_once(entry.once, [&] {
    auto loaded = load(kRows[static_cast<size_t>(kind)]);
    if (loaded.ok()) {
      entry.backend.store(*loaded, std::memory_order_release);
    } else {
      entry.why = loaded.status();
    }
  });
  if (Backend* backend = entry.backend.load(std::memory_order_acquire)) return backend;
  return entry.why;
}

Result<Backend*> findBackend(const Device& device) {
  HMC_ASSIGN(Backend * backend, findBackend(device.kind));
  HMC_TRY(backend->checkIndex(device.index));
  return backend;
}

Backend* loadedBackend(DeviceKind kind) {
  if (kind == DeviceKind::cpu) return &hostBackend();
  return isKnown(kind) ? entryOf(kind).backend.load(std::memory_order_acquire) : nullptr;
}

void loadPlugins() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const Plugin& plugin : plugins().loaded) (void)findBackend(plugin.backend->facts().kind);
  });
}

std::vector<Backend*> accelerators() {
  std::vector<Backend*> found;
  for (DeviceKind kind : kDeviceKinds) {
    if (kind == DeviceKind::cpu) continue;
    auto backend = findBackend(kind);
    if (backend.ok() && (*backend)->facts().deviceCount() > 0) found.push_back(*backend);
  }
  // Callers that want "whatever there is" get no Status, so nobody would notice a plugin that was
  // named and could not be loaded.
  static std::once_flag warned;
  std::call_once(warned, [] {
    if (!plugins().failures.empty()) logWarn("no accelerator{}", plugins().failures);
  });
  return found;
}

}  // namespace hmc
