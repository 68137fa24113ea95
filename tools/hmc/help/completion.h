#pragma once

#include <string>

#include "help/command_data.h"

// Scripts that teach a shell to complete the command line of `hmc`.
namespace hmc::tool {

std::string bashCompletion(const CommandData& program);
std::string zshCompletion(const CommandData& program);
std::string fishCompletion(const CommandData& program);

}  // namespace hmc::tool
