#pragma once

#include <cstdlib>
#include <string>

#include <CLI/CLI.hpp>

#include "hmc/device.h"

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
// Completion, and hidden the files that are installed with the program.
void addHelpFiles(CLI::App& app, int& exitStatus);

// The exit status after a wrong command line.
inline constexpr int kUsageError = 2;

// Options that several commands have, with types that help, manual page and completion can show.

// "--from 4KiB". `least` and `most` are in bytes.
CLI::Option* addSize(CLI::App& command, const std::string& name, size_t& bytes, size_t least,
                     size_t most, const std::string& what);
// "--timeout 2.5", in seconds.
CLI::Option* addSeconds(CLI::App& command, const std::string& name, double& seconds, double least,
                        double most, const std::string& what);
// "cuda:0".
CLI::Option* addDevice(CLI::App& command, const std::string& name, Device& device,
                       const std::string& what);
// Of a peer: "host:5001", "tcp://host:5001", "unix:///path".
CLI::Validator anAddress();
// Names of transports: one, or where the option has a delimiter, several.
CLI::Validator aTransport();

// For commands whose table already says what is wrong: log lines would interrupt it. HMC_LOG still
// decides where it is set. Call this before anything logs.
inline void keepLogToErrors() {
  setenv("HMC_LOG", "error", 0);
}

}  // namespace hmc::tool
