#pragma once

#include <string>
#include <vector>

#include "hmc/result.h"

namespace hmc::ucx {

inline constexpr const char* kLibraryName = "libucp.so.0";

// Where a libucp may lie, in the order in which they are looked at.
struct Search {
  std::string root;                   // UCX_ROOT; its lib/ is meant
  std::vector<std::string> system;    // folders of libraries
  std::vector<std::string> prefixes;  // of Python installations: PREFIX/lib/python3*/...

  // What this process would look at.
  static Search ofThisProcess();
};

// The path of the first one that is there; a file is looked for, not loaded. `unsupported` says
// where it was looked for.
Result<std::string> findLibrary(const Search& search);

// The one that this process has loaded already; empty when it has none.
std::string loadedLibrary();

}  // namespace hmc::ucx
