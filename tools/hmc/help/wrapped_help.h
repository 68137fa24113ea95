#pragma once

#include <cstddef>
#include <string>

#include <CLI/CLI.hpp>

namespace hmc::tool {

// Lines that are longer than `width` go on below the second column where they have one, else below
// their beginning. Examples stay as they are: they are there to be copied.
std::string wrapped(const std::string& text, size_t width);

// The columns of the terminal that standard output is, of COLUMNS, or 80.
size_t columnsOfOutput();

// The help of the parser, as wide as the terminal.
class WrappedHelp : public CLI::Formatter {
 public:
  WrappedHelp() { column_width(24); }
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    return wrapped(CLI::Formatter::make_help(app, std::move(name), mode), columnsOfOutput());
  }
};

}  // namespace hmc::tool
