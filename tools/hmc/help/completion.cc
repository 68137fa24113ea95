#include "help/completion.h"

#include <functional>

#include <fmt/core.h>

// All three scripts do the same: find out which command the words before the cursor name, "place",
// and whether the last of them is an option that waits for its value, "value". No value begins with
// a dash.
namespace hmc::tool {

namespace {

using Visit = std::function<void(const std::string& place, const CommandData& command)>;

// Every command below this one, too. A place is "hmc bench pool".
void forEach(const CommandData& command, const std::string& place, const Visit& visit) {
  visit(place, command);
  for (const CommandData& one : command.commands) forEach(one, place + " " + one.name, visit);
}

// For the shell, which ends a quoted text at the next quote.
std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return "'" + out + "'";
}

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string all;
  for (const auto& word : words) all += (all.empty() ? "" : between) + word;
  return all;
}

std::vector<std::string> optionsOf(const CommandData& command) {
  std::vector<std::string> names;
  for (const auto& option : command.options) {
    if (!option.positional) names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

// Patterns of a `case` for the words that lead to another place, and for those that want a value.
std::string commandPatterns(const CommandData& program, const char* between) {
  std::vector<std::string> patterns;
  forEach(program, program.name, [&](const std::string& place, const CommandData& command) {
    for (const auto& one : command.commands) patterns.push_back(quoted(place + " " + one.name));
  });
  return joined(patterns, between);
}
std::string valuePatterns(const CommandData& program, const char* between) {
  std::vector<std::string> patterns;
  forEach(program, program.name, [&](const std::string& place, const CommandData& command) {
    for (const auto& option : command.options) {
      if (option.positional || !option.takesValue) continue;
      for (const auto& name : option.names) patterns.push_back(quoted(place + " " + name));
    }
  });
  return joined(patterns, between);
}

// In bash and zsh, which differ in where the words are.
std::string walk(const CommandData& program, const char* from, const char* to, const char* words) {
  return fmt::format(R"(  for ((i = {}; i < {}; i++)); do
    word=${{{}[i]}}
    [[ $word == '=' ]] && continue
    if [[ -n $value && $word != -* ]]; then
      value=
      continue
    fi
    value=
    case "$place $word" in
      {}) place="$place $word" ;;
      {}) value=$word ;;
    esac
  done
)",
                     from, to, words, commandPatterns(program, " | "),
                     valuePatterns(program, " | "));
}

// How a shell offers what an option or an argument takes; empty where it has nothing to offer.
using Offer = std::string (*)(const OptionData& option);

bool isOf(const OptionData& option, const char* type) {
  return option.type.rfind(type, 0) == 0;
}

std::string bashOffer(const OptionData& option) {
  if (!option.choices.empty()) {
    return std::string(option.list ? "_hmc_list " : "_hmc_words ") +
           quoted(joined(option.choices, " "));
  }
  if (isOf(option, "FILE")) return "_hmc_files -f";
  if (isOf(option, "DIR")) return "_hmc_files -d";
  return isOf(option, "PROGRAM") ? "_hmc_files -c" : "";
}

std::string zshOffer(const OptionData& option) {
  if (!option.choices.empty()) {
    return (option.list ? "compset -P '*,'; compadd -- " : "compadd -- ") +
           joined(option.choices, " ");
  }
  if (isOf(option, "FILE")) return "_files";
  if (isOf(option, "DIR")) return "_files -/";
  return isOf(option, "PROGRAM") ? "_command_names -e; _files" : "";
}

std::string fishOffer(const OptionData& option) {
  if (!option.choices.empty()) {
    const std::string words = joined(option.choices, " ");
    return " -x -a " + quoted(option.list ? "(__fish_append , " + words + ")" : words);
  }
  if (isOf(option, "FILE")) return " -r -F";
  if (isOf(option, "DIR")) return " -x -a '(__fish_complete_directories)'";
  if (isOf(option, "PROGRAM")) return " -x -a '(__fish_complete_subcommand)'";
  return option.takesValue ? " -x" : "";
}

// Branches of a `case "$place $value"`, and what a command's arguments take.
std::string valueBranches(const CommandData& program, Offer offer) {
  std::string text;
  forEach(program, program.name, [&](const std::string& place, const CommandData& command) {
    for (const auto& option : command.options) {
      const std::string offered = option.positional ? "" : offer(option);
      std::vector<std::string> patterns;
      for (const auto& name : option.names) patterns.push_back(quoted(place + " " + name));
      if (!offered.empty())
        text += fmt::format("      {}) {} ;;\n", joined(patterns, " | "), offered);
    }
  });
  return text;
}
std::string argumentsOf(const CommandData& command, Offer offer) {
  std::string text;
  for (const auto& option : command.options) {
    const std::string offered = option.positional ? offer(option) : "";
    if (!offered.empty()) text += (text.empty() ? "" : "; ") + offered;
  }
  return text;
}

// For zsh's _describe: a word, a colon, what it means.
std::string described(const std::string& word, const std::string& meaning) {
  return quoted(word + ":" + meaning);
}

std::string fishLine(const std::string& place, const std::string& rest,
                     const std::string& meaning) {
  return fmt::format("complete -c hmc -n {}{} -d {}\n", quoted("__hmc_at " + place), rest,
                     quoted(meaning));
}

// "-s n -l ranks"
std::string fishNames(const OptionData& option) {
  std::string names;
  for (const auto& name : option.names)
    names += name.rfind("--", 0) == 0 ? " -l " + name.substr(2) : " -s " + name.substr(1);
  return names;
}

}  // namespace

std::string bashCompletion(const CommandData& program) {
  std::string places;
  forEach(program, program.name, [&](const std::string& place, const CommandData& command) {
    std::vector<std::string> commands;
    for (const auto& one : command.commands) commands.push_back(one.name);
    const std::string arguments = argumentsOf(command, bashOffer);
    places += fmt::format("    {}) options={} words={} arguments={} ;;\n", quoted(place),
                          quoted(joined(optionsOf(command), " ")), quoted(joined(commands, " ")),
                          quoted(arguments));
  });
  return fmt::format(R"(# Completion of the hmc command in bash, made by `hmc completion bash`.
_hmc_words() {{ mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }}
# Several, separated by commas: those that are complete stay.
_hmc_list() {{
  local before=
  [[ $cur == *,* ]] && before=${{cur%,*}},
  mapfile -t COMPREPLY < <(compgen -P "$before" -W "$1" -- "${{cur##*,}}")
}}
_hmc_files() {{
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "$cur"; [[ $1 != -c ]] || compgen -f -- "$cur")
}}
_hmc() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} place=hmc value= word i options words arguments
  COMPREPLY=()
{}  [[ $cur == '=' ]] && cur=
  if [[ -n $value && $cur != -* ]]; then
    case "$place $value" in
{}    esac
    return
  fi
  case "$place" in
{}  esac
  if [[ $cur == -* ]]; then
    _hmc_words "$options"
  elif [[ -n $arguments ]]; then
    eval "$arguments"
  else
    _hmc_words "${{words:-$options}}"
  fi
}}
complete -F _hmc hmc
)",
                     walk(program, "1", "COMP_CWORD", "COMP_WORDS"),
                     valueBranches(program, bashOffer), places);
}

std::string zshCompletion(const CommandData& program) {
  std::string places;
  forEach(program, program.name, [&](const std::string& place, const CommandData& command) {
    std::string options;
    std::string commands;
    for (const auto& option : command.options) {
      if (option.positional) continue;
      for (const auto& name : option.names)
        options += "\n        " + described(name, option.description);
    }
    for (const auto& one : command.commands)
      commands += "\n        " + described(one.name, one.description);
    places += fmt::format("    {})\n      options=({})\n      commands=({})\n", quoted(place),
                          options, commands);
    const std::string arguments = argumentsOf(command, zshOffer);
    if (!arguments.empty()) places += fmt::format("      arguments={}\n", quoted(arguments));
    places += "      ;;\n";
  });
  return fmt::format(R"(#compdef hmc
# Completion of the hmc command in zsh, made by `hmc completion zsh`.
_hmc() {{
  local place=hmc value= word i arguments=
  local -a options commands
{}  if [[ -n $value && $PREFIX != -* ]]; then
    case "$place $value" in
{}    esac
    return
  fi
  case "$place" in
{}  esac
  if [[ $PREFIX == -* ]]; then
    _describe -o option options
  elif [[ -n $arguments ]]; then
    eval "$arguments"
  elif (( $#commands )); then
    _describe command commands
  else
    _describe -o option options
  fi
}}
if [[ $funcstack[1] == _hmc ]]; then _hmc "$@"; else compdef _hmc hmc; fi
)",
                     walk(program, "2", "CURRENT", "words"), valueBranches(program, zshOffer),
                     places);
}

std::string fishCompletion(const CommandData& program) {
  std::string lines;
  forEach(program, program.name, [&](const std::string& place, const CommandData& command) {
    for (const auto& one : command.commands)
      lines += fishLine(place, " -a " + one.name, one.description);
    for (const auto& option : command.options) {
      const std::string names = option.positional ? "" : fishNames(option);
      const std::string offered = fishOffer(option);
      if (!option.positional || offered.find(" -a ") != std::string::npos)
        lines += fishLine(place, names + offered, option.description);
    }
  });
  return fmt::format(R"(# Completion of the hmc command in fish, made by `hmc completion fish`.
function __hmc_at
    set -l place hmc
    set -l value ''
    for word in (commandline -opc)[2..-1]
        if test -n "$value"; and not string match -q -- '-*' $word
            set value ''
            continue
        end
        set value ''
        switch "$place $word"
            case {}
                set place "$place $word"
            case {}
                set value $word
        end
    end
    test "$place" = "$argv"
end
complete -c hmc -f
{})",
                     commandPatterns(program, " "), valuePatterns(program, " "), lines);
}

}  // namespace hmc::tool
