#include "transport/ucx/library.h"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <type_traits>

#include "base/dynamic_library.h"
#include "base/error.h"
#include "base/log.h"

namespace hmc::ucx {

namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool isFile(const fs::path& path) {
  std::error_code none;
  return fs::is_regular_file(path, none);
}

// The distribution's other libraries are beside the C library.
std::string folderOfLibc() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&std::getenv), &info) == 0 || info.dli_fname == nullptr) {
    return "";
  }
  return fs::path(info.dli_fname).parent_path();
}

// /proc/self/exe leads out of a virtual environment, whose interpreter is a link; but activating
// one sets a variable.
std::vector<std::string> pythonPrefixes() {
  std::vector<std::string> prefixes;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) prefixes.push_back(variable(name));
  std::error_code none;
  prefixes.push_back(fs::read_symlink("/proc/self/exe", none).parent_path().parent_path());
  if (const std::string home = variable("HOME"); !home.empty())
    prefixes.push_back(home + "/.local");
  prefixes.insert(prefixes.end(), {"/usr/local", "/usr"});
  std::erase(prefixes, "");
  return prefixes;
}

// PREFIX/lib/python3.11/site-packages/libucx/lib/libucp.so.0, the newest Python first.
std::string inPython(const std::string& prefix) {
  const auto names = namesIn(prefix + "/lib");
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    if (name->rfind("python3", 0) != 0) continue;
    for (const char* packages : {"site-packages", "dist-packages"}) {
      const fs::path path =
          fs::path(prefix) / "lib" / *name / packages / "libucx" / "lib" / kLibraryName;
      if (isFile(path)) return path;
    }
  }
  return "";
}

// Puts back the handlers that were there when it was made.
class KeptSignals {
 public:
  KeptSignals() {
    for (int number = 1; number < kSignals; ++number) sigaction(number, nullptr, &before_[number]);
  }
  ~KeptSignals() {
    for (int number = 1; number < kSignals; ++number) sigaction(number, &before_[number], nullptr);
  }

 private:
  static constexpr int kSignals = 32;
  std::array<struct sigaction, kSignals> before_{};
};

// Otherwise the loader could find other versions of these libraries in its own search path, and
// libucp would not work with them.
void loadSiblings(const std::string& path) {
  if (path.find('/') == std::string::npos) return;
  const fs::path folder = fs::path(path).parent_path();
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
void takeLog(const DynamicLibrary& library) {
  if (std::getenv("UCX_LOG_LEVEL") != nullptr || std::getenv("UCX_LOG_FILE") != nullptr) return;
  auto push = library.symbol<void(LogHandler)>("ucs_log_push_handler");
  if (push.ok()) (*push)(&logQuietly);
}

Status checkVersion(Api& api) {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  api.ucp_get_version(&major, &minor, &release);
  api.version = fmt::format("{}.{}.{}", major, minor, release);
  if (major == UCP_API_MAJOR && minor >= UCP_API_MINOR) return Status();
  return error(Code::unsupported,
               "{} is UCX {}: this HMC needs {}.{} or a newer {}; set UCX_ROOT to one that fits",
               api.path, api.version, UCP_API_MAJOR, UCP_API_MINOR, UCP_API_MAJOR);
}

// The version first: another one may lack functions.
Status bindAll(const DynamicLibrary& library, Api& api) {
#define HMC_UCX_BIND(name) \
  { HMC_ASSIGN(api.name, library.symbol<std::remove_pointer_t<decltype(api.name)>>(#name)); }
  HMC_UCX_BIND(ucp_get_version)
  HMC_TRY(checkVersion(api));
  HMC_UCX_FUNCTIONS(HMC_UCX_BIND)
#undef HMC_UCX_BIND
  return Status();
}

}  // namespace

Search Search::ofThisProcess() {
  Search search;
  search.root = variable("UCX_ROOT");
  search.system.push_back("/usr/local/ucx/lib");
  std::istringstream folders(variable("LD_LIBRARY_PATH"));
  for (std::string folder; std::getline(folders, folder, ':');) search.system.push_back(folder);
  search.system.push_back(folderOfLibc());
  search.system.insert(search.system.end(), {"/usr/local/lib", "/usr/lib64", "/usr/lib", "/lib64"});
  std::erase(search.system, "");
  search.prefixes = pythonPrefixes();
  return search;
}

std::vector<std::string> namesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (fs::directory_iterator at(folder, none), end; !none && at != end; at.increment(none)) {
    names.push_back(at->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::string> findLibrary(const Search& search) {
  std::vector<std::string> folders = search.system;
  if (!search.root.empty()) folders.insert(folders.begin(), search.root + "/lib");
  std::string searched;
  for (const std::string& folder : folders) {
    const fs::path path = fs::path(folder) / kLibraryName;
    if (isFile(path)) return path.string();
    searched += (searched.empty() ? "" : ", ") + folder;
  }
  for (const std::string& prefix : search.prefixes) {
    if (std::string path = inPython(prefix); !path.empty()) return path;
    searched += (searched.empty() ? "" : ", ") + prefix + "/lib/python3*";
  }
  return error(Code::unsupported,
               "there is no {} in {}: install libucx0 or the Python package libucx-cu12, or set "
               "UCX_ROOT to where UCX is",
               kLibraryName, searched);
}

std::string loadedLibrary() {
  void* handle = dlopen(kLibraryName, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return "";
  link_map* map = nullptr;
  const bool known = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr;
  std::string path = known && map->l_name[0] != '\0' ? map->l_name : kLibraryName;
  dlclose(handle);
  return path;
}

Result<std::shared_ptr<const Api>> Api::load(const std::string& path) {
  KeptSignals kept;
  const bool first = loadedLibrary().empty();
  if (first) loadSiblings(path);
  auto library = DynamicLibrary::open(path);
  if (!library.ok()) return Status(Code::unsupported, library.status().message());
  library->stay();
  auto api = std::make_shared<Api>();
  api->path = path;
  Status status = bindAll(*library, *api);
  if (!status.ok()) return Status(Code::unsupported, status.message());
  if (first) takeLog(*library);
  return std::shared_ptr<const Api>(std::move(api));
}

}  // namespace hmc::ucx
