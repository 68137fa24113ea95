#pragma once

#include <string>

#include "help/command_data.h"

namespace hmc::tool {

inline constexpr const char* kExitStatuses =
    "The exit status is 0 when all went well, 1 when something failed or a target was missed, and "
    "2 "
    "when the command line is wrong.";

// hmc(1), in the macros of man(7).
std::string manPage(const CommandData& program);

}  // namespace hmc::tool
