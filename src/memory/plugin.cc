#include "memory/plugin.h"

#include "base/error.h"

namespace hmc {

Result<Plugin> loadPlugin(const std::string& path) {
  HMC_ASSIGN(auto opened, DynamicLibrary::open(path));
  HMC_ASSIGN(auto* entry, opened.symbol<decltype(hmcMemoryBackend)>(kPluginEntry));
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

}  // namespace hmc
