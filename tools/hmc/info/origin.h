#pragma once

#include <string>

namespace hmc::tool {

// Where the running program was installed from and lies: a wheel, an editable install, a build
// folder, or the prefix of `make install`.
std::string installedFrom();

}  // namespace hmc::tool
