#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace hmc::tool {

// The answer to a wrong command line: what is wrong, and what to type instead.
std::string usageAdvice(const CLI::App* app, const CLI::Error& error);

}  // namespace hmc::tool
