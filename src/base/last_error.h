#pragma once

#include <string>

namespace hmc {

// What lastError() answers on this thread from now on. Only the facades in api/ call it.
void setLastError(std::string text);

}  // namespace hmc
