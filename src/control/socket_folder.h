#pragma once

#include <string>

#include "hmc/status.h"

namespace hmc::control {

// Ok when nobody but this user and root can put another socket in the place of the one at `path`:
// the folder is one of theirs, and where everybody may write to it, as to /tmp, it has the sticky
// bit. A folder that is not there is left to whoever uses it.
Status checkSocketFolder(const std::string& path);

}  // namespace hmc::control
