#include "transport/ucx/api.h"

#include <dlfcn.h>
#include <signal.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "transport/ucx/library.h"

namespace hmc::ucx {

namespace {

// Puts back the handlers that were there when it was made.
class KeptSignals {
 public:
  KeptSignals() {
    for (int number = 1; number < kSignals; ++number) sigaction(number, nullptr, &before_[number]);
  }
  ~KeptSignals() {
    for (int number = 1; number < kSignals; ++number) {
      struct sigaction now {};
      if (sigaction(number, nullptr, &now) != 0) continue;
      if (now.sa_handler != before_[number].sa_handler) {
        sigaction(number, &before_[number], nullptr);
      }
    }
  }

 private:
  static constexpr int kSignals = 32;
  std::array<struct sigaction, kSignals> before_{};
};

const char* loaderText() {
  const char* text = dlerror();
  return text ? text : "the loader gives no reason";
}

// Otherwise the loader could find other versions of these libraries in its own search path, and
// libucp would not work with them.
void loadSiblings(const std::string& path) {
  if (path.find('/') == std::string::npos) return;
  const auto folder = std::filesystem::path(path).parent_path();
  for (const char* name : {"libucm.so.0", "libucs.so.0", "libuct.so.0"}) {
    dlopen((folder / name).c_str(), RTLD_NOW | RTLD_LOCAL);
  }
}

// As ucs/debug/log_def.h has it, a header that distributions leave out.
using LogHandler = int (*)(const char* file, unsigned line, const char* function, int level,
                           const void* component, const char* format, va_list values);
constexpr int kNoFurther = 0;

// UCX prints its log to standard output. What concerns an operation is in its Status; the rest is
// for debugging.
int logQuietly(const char*, unsigned, const char*, int, const void*, const char* format,
               va_list values) {
  char text[512];
  std::vsnprintf(text, sizeof(text), format, values);
  logDebug("ucx: {}", text);
  return kNoFurther;
}

// Not where somebody else uses UCX in this process, or has said where its lines go.
void takeLog(void* library) {
  if (std::getenv("UCX_LOG_LEVEL") != nullptr || std::getenv("UCX_LOG_FILE") != nullptr) return;
  using Push = void (*)(LogHandler);
  if (auto push = reinterpret_cast<Push>(dlsym(library, "ucs_log_push_handler"))) {
    push(&logQuietly);
  }
}

template <class Function>
Status find(void* library, const std::string& path, const char* name, Function& into) {
  void* found = dlsym(library, name);
  if (found == nullptr) {
    return error(Code::unsupported, "{} has no function {}: {}", path, name, loaderText());
  }
  into = reinterpret_cast<Function>(found);
  return Status();
}

}  // namespace

Result<std::shared_ptr<const Api>> Api::load(const std::string& path) {
  KeptSignals kept;
  const bool first = loadedLibrary().empty();
  if (first) loadSiblings(path);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return error(Code::unsupported, "cannot load {}: {}", path, loaderText());
  }
  auto api = std::make_shared<Api>();
  api->path = path;
  HMC_TRY(find(library, path, "ucp_get_version", api->ucp_get_version));
  HMC_TRY(api->checkVersion());
#define HMC_UCX_FIND(name) HMC_TRY(find(library, path, #name, api->name));
  HMC_UCX_FUNCTIONS(HMC_UCX_FIND)
#undef HMC_UCX_FIND
  if (first) takeLog(library);
  return std::shared_ptr<const Api>(std::move(api));
}

Status Api::checkVersion() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  ucp_get_version(&major, &minor, &release);
  version = fmt::format("{}.{}.{}", major, minor, release);
  if (major == UCP_API_MAJOR && minor >= UCP_API_MINOR) return Status();
  return error(Code::unsupported,
               "{} is UCX {}: this HMC needs {}.{} or a newer {}; set UCX_ROOT to one that fits",
               path, version, UCP_API_MAJOR, UCP_API_MINOR, UCP_API_MAJOR);
}

}  // namespace hmc::ucx
