#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

// What the command line parser knows of a command, for what is generated from it: completion and
// the manual page. Both are never older than the program.
namespace hmc::tool {

struct OptionData {
  std::vector<std::string> names;  // "--size", "-n"; of an argument without dashes its own
  bool positional = false;
  bool takesValue = false;
  bool optionalValue = false;        // "--against" alone is fine
  bool list = false;                 // several values, separated by commas
  std::string type;                  // "FILE", "DIR", "SIZE", "FLOAT in [0.1 - 600]"
  std::vector<std::string> choices;  // every value that it takes; empty: too many
  std::string standard;              // what holds without it
  std::string description;

  // "-n,--ranks"
  std::string allNames() const;
};

struct CommandData {
  std::string name;
  std::string description;
  std::string footer;
  std::vector<OptionData> options;  // arguments come last
  std::vector<CommandData> commands;
};

// Without what --help does not list.
CommandData describe(const CLI::App& app);

}  // namespace hmc::tool
