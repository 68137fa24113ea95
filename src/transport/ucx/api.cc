#include "transport/ucx/api.h"

#include <dlfcn.h>
#include <signal.h>

#include <array>
#include <filesystem>

#include "base/error.h"
#include "transport/ucx/library.h"

namespace hmc::ucx {

namespace {

constexpr unsigned kMajor = UCP_API_MAJOR;

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

// The libraries beside libucp may be older ones' namesakes in the loader's own search path, and a
// libucp between them would not work.
void loadSiblings(const std::string& path) {
  if (path.find('/') == std::string::npos) return;
  const auto folder = std::filesystem::path(path).parent_path();
  for (const char* name : {"libucm.so.0", "libucs.so.0", "libuct.so.0"}) {
    dlopen((folder / name).c_str(), RTLD_NOW | RTLD_LOCAL);
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
  if (loadedLibrary().empty()) loadSiblings(path);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return error(Code::unsupported, "cannot load {}: {}", path, loaderText());
  }
  auto api = std::make_shared<Api>();
  api->path = path;
#define HMC_UCX_FIND(name) HMC_TRY(find(library, path, #name, api->name));
  HMC_UCX_FUNCTIONS(HMC_UCX_FIND)
#undef HMC_UCX_FIND
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  api->ucp_get_version(&major, &minor, &release);
  api->version = fmt::format("{}.{}.{}", major, minor, release);
  if (major != kMajor || minor < UCP_API_MINOR) {
    return error(Code::unsupported,
                 "{} is UCX {}: this HMC needs {}.{} or a newer {}; set UCX_ROOT to one that fits",
                 path, api->version, kMajor, UCP_API_MINOR, kMajor);
  }
  return std::shared_ptr<const Api>(std::move(api));
}

}  // namespace hmc::ucx
