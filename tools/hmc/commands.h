#pragma once

#include <cstdlib>

#include <CLI/CLI.hpp>

// The subcommands of `hmc`. Each adds itself to the program; when the command line chose it, it
// runs and leaves its exit status in `exitStatus`.
namespace hmc::tool {

void addDemo(CLI::App& app, int& exitStatus);
void addBench(CLI::App& app, int& exitStatus);
void addDoctor(CLI::App& app, int& exitStatus);
void addExplain(CLI::App& app, int& exitStatus);
void addInfo(CLI::App& app, int& exitStatus);
void addStore(CLI::App& app, int& exitStatus);
void addLitmus(CLI::App& app, int& exitStatus);
void addPool(CLI::App& app, int& exitStatus);

// The exit status after a wrong command line.
inline constexpr int kUsageError = 2;

// For commands whose table already says what is wrong: log lines would interrupt it. HMC_LOG still
// decides where it is set. Call this before anything logs.
inline void keepLogToErrors() {
  setenv("HMC_LOG", "error", 0);
}

}  // namespace hmc::tool
