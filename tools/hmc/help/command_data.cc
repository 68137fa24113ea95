#include "help/command_data.h"

#include <algorithm>
#include <sstream>

namespace hmc::tool {

namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

// The parser writes a set of values into the name of the type: "TEXT:{bash,fish,zsh}".
std::vector<std::string> choicesIn(const std::string& type) {
  const size_t open = type.find('{');
  const size_t close = type.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return {};
  return split(type.substr(open + 1, close - open - 1), ',');
}

OptionData describe(const CLI::Option& option) {
  OptionData data;
  for (const auto& name : option.get_snames()) data.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) data.names.push_back("--" + name);
  data.positional = data.names.empty();
  if (data.positional) data.names.push_back(option.get_name(true));
  data.takesValue = option.get_items_expected_max() > 0;
  data.optionalValue = data.takesValue && option.get_items_expected_min() == 0;
  data.list = option.get_delimiter() == ',';
  if (data.takesValue) {
    data.type = option.get_type_name();
    data.choices = choicesIn(data.type);
    data.standard = option.get_default_str();
  }
  data.description = option.get_description();
  return data;
}

}  // namespace

std::string OptionData::allNames() const {
  std::string all;
  for (const auto& name : names) all += (all.empty() ? "" : ",") + name;
  return all;
}

CommandData describe(const CLI::App& app) {
  CommandData data{app.get_name(), app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) data.options.push_back(describe(*option));
  }
  std::stable_partition(data.options.begin(), data.options.end(),
                        [](const OptionData& one) { return !one.positional; });
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) data.commands.push_back(describe(*command));
  }
  return data;
}

}  // namespace hmc::tool
