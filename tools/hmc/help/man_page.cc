#include "help/man_page.h"

#include <sstream>

#include <fmt/core.h>

#include "hmc/version.h"

namespace hmc::tool {

namespace {

// Text that the formatter does not take for its own: a dash is one, a leading dot is no macro.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      out += std::string("\\&") + c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string optionText(const OptionData& option) {
  const bool shown = option.takesValue && !option.positional;
  std::string text = fmt::format(".TP\n\\fB{}\\fR{}\n{}", plain(option.allNames()),
                                 shown ? " " + plain(option.type) : "", plain(option.description));
  if (!option.standard.empty()) text += fmt::format("; {} by default", plain(option.standard));
  return text + "\n";
}

// Paragraphs, and examples as they are.
std::string footerText(const std::string& footer) {
  std::istringstream in(footer);
  std::string text;
  bool examples = false;
  for (std::string line; std::getline(in, line);) {
    if (line == "Examples:") {
      text += ".PP\nExamples:\n.PP\n.nf\n";
      examples = true;
    } else {
      text += line.empty() && !examples ? ".PP\n" : plain(line) + "\n";
    }
  }
  return text + (examples ? ".fi\n" : "");
}

std::string examplesOf(const std::string& footer) {
  const size_t begin = footer.find("Examples:");
  return begin == std::string::npos ? "" : footer.substr(begin);
}

std::string commandText(const CommandData& command, const std::string& name) {
  std::string text = fmt::format(".SS {}\n{}\n", plain(name), plain(command.description));
  for (const auto& option : command.options) text += optionText(option);
  if (!command.footer.empty()) text += ".PP\n" + footerText(command.footer);
  for (const auto& one : command.commands) text += commandText(one, name + " " + one.name);
  return text;
}

}  // namespace

std::string manPage(const CommandData& program) {
  std::string text = fmt::format(
      ".TH HMC 1 \"\" \"hmc {}\" \"User Commands\"\n"
      ".SH NAME\nhmc \\- moves bytes between the memories of processes and hosts\n"
      ".SH SYNOPSIS\n.B hmc\n.I command\n[options]\n"
      ".SH DESCRIPTION\n{}\n",
      kVersion, plain(program.description));
  text += ".SH OPTIONS\n";
  for (const auto& option : program.options) text += optionText(option);
  text += ".SH COMMANDS\n";
  for (const auto& one : program.commands) text += commandText(one, program.name + " " + one.name);
  return text + ".SH EXIT STATUS\n" + plain(kExitStatuses) + "\n" + ".SH EXAMPLES\n" +
         footerText(examplesOf(program.footer));
}

}  // namespace hmc::tool
