#pragma once

#include <memory>
#include <string>
#include <type_traits>

#include "hmc/result.h"

namespace hmc {

// A shared library that this process loaded; unloaded with the object. Who keeps code or data of
// the library keeps the object, for ever where the library starts threads.
class DynamicLibrary {
 public:
  // A name without a slash is searched for as ld.so(8) does. All symbols are bound at once, so a
  // library that does not fit fails here and not in the middle of a call. notFound names the file.
  static Result<DynamicLibrary> open(const std::string& path);

  // symbol<int(const char*)>("name"): a pointer to that function, or notFound.
  template <class Function>
  Result<Function*> symbol(const char* name) const {
    static_assert(std::is_function_v<Function>);
    auto found = address(name);
    if (!found.ok()) return found.status();
    return reinterpret_cast<Function*>(*found);
  }

  const std::string& path() const { return path_; }
  // Stays in the process when the object goes: for libraries that lose what they hold.
  void stay() const;

 private:
  DynamicLibrary(std::string path, void* handle);
  Result<void*> address(const char* name) const;

  std::string path_;
  std::unique_ptr<void, int (*)(void*)> handle_;
};

}  // namespace hmc
