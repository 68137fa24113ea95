#pragma once

#include <string>
#include <vector>

#include "hmc/result.h"

namespace hmc::ucx {

inline constexpr const char* kLibraryName = "libucp.so.0";

// Where to search for a libucp, in this order.
struct Search {
  std::string root;                   // UCX_ROOT; its lib/ is meant
  std::vector<std::string> system;    // folders of libraries
  std::vector<std::string> prefixes;  // of Python installations: PREFIX/lib/python3*/...

  // From this process's environment.
  static Search ofThisProcess();
};

// The path of the first one that exists; it is not loaded. `unsupported` names the places that were
// searched.
Result<std::string> findLibrary(const Search& search);

// The one that this process has loaded already; empty when it has none.
std::string loadedLibrary();

}  // namespace hmc::ucx
