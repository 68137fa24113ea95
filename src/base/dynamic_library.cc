#include "base/dynamic_library.h"

#include <dlfcn.h>

#include "base/error.h"

namespace hmc {

namespace {
const char* loaderText() {
  const char* text = dlerror();
  return text ? text : "the loader gives no reason";
}
}  // namespace

Result<DynamicLibrary> DynamicLibrary::open(const std::string& path) {
  if (path.empty()) return error(Code::invalidArgument, "the name of a shared library is empty");
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) return error(Code::notFound, "cannot load {}: {}", path, loaderText());
  return DynamicLibrary(path, handle);
}

DynamicLibrary::DynamicLibrary(std::string path, void* handle)
    : path_(std::move(path)), handle_(handle, dlclose) {}

Result<void*> DynamicLibrary::address(const char* name) const {
  void* found = dlsym(handle_.get(), name);
  if (!found) return error(Code::notFound, "{} has no symbol {}: {}", path_, name, loaderText());
  return found;
}

void DynamicLibrary::stay() const {
  if (void* again = dlopen(path_.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE)) dlclose(again);
}

}  // namespace hmc
