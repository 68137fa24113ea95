#pragma once

#include <CLI/CLI.hpp>

// The subcommands of `hmc`. Each adds itself to the program; when the command line chose it, it
// runs and leaves its exit status in `exitStatus`.
namespace hmc::tool {

void addDemo(CLI::App& app, int& exitStatus);
void addBench(CLI::App& app, int& exitStatus);
void addDoctor(CLI::App& app, int& exitStatus);
void addExplain(CLI::App& app, int& exitStatus);
void addInfo(CLI::App& app, int& exitStatus);

}  // namespace hmc::tool
