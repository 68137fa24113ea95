#include "transport/ucx/library.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/error.h"

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
  std::vector<fs::path> pythons;
  std::error_code none;
  for (fs::directory_iterator at(fs::path(prefix) / "lib", none), end; !none && at != end;
       at.increment(none)) {
    if (at->path().filename().string().rfind("python3", 0) == 0) pythons.push_back(at->path());
  }
  std::sort(pythons.rbegin(), pythons.rend());
  for (const fs::path& python : pythons) {
    for (const char* packages : {"site-packages", "dist-packages"}) {
      const fs::path path = python / packages / "libucx" / "lib" / kLibraryName;
      if (isFile(path)) return path;
    }
  }
  return "";
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

}  // namespace hmc::ucx
