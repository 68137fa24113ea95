#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace hmc::tool {

// What a command line that makes no sense is answered: what was wrong, what to type instead.
std::string usageAdvice(const CLI::App* app, const CLI::Error& error);

}  // namespace hmc::tool
