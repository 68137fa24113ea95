#include "base/environment.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <sstream>

#include "base/error.h"
#include "base/port_range.h"

namespace hmc {

namespace {

std::vector<std::string> split(const std::string& list, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, separator);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

Status checkChoice(const Variable& variable, const std::string& word, const char* expected) {
  const bool known =
      fmt::format(" {} ", variable.choices).find(" " + word + " ") != std::string::npos;
  if (known) return Status();
  return error(Code::invalidArgument, "{}=\"{}\": expected {}: {}", variable.name,
               valueOf(variable).value_or(""), expected, variable.choices);
}

Status checkFiles(const Variable& variable) {
  for (const auto& file : split(valueOf(variable).value_or(""), ':')) {
    if (access(file.c_str(), R_OK) == 0) continue;
    return errnoStatus(fmt::format("{}: open {}", variable.name, file));
  }
  return Status();
}

}  // namespace

const char* readerName(Variable::Reader reader) {
  constexpr const char* kNames[] = {"Node, Pool, stores, documented classes",
                                    "Node, Pool, documented classes", "documented classes", "Pool"};
  return kNames[static_cast<size_t>(reader)];
}

std::optional<std::string> valueOf(const Variable& variable) {
  const char* value = std::getenv(variable.name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

std::vector<std::string> listOf(const Variable& variable) {
  return split(valueOf(variable).value_or(""), ',');
}

Result<std::chrono::milliseconds> millisecondsOf(const Variable& variable) {
  const std::string text = valueOf(variable).value_or(variable.standard);
  int64_t number = 0;
  const char* end = text.data() + text.size();
  auto [stop, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc() || stop != end || number <= 0) {
    return error(Code::invalidArgument, "{}=\"{}\": expected a number of milliseconds above 0",
                 variable.name, text);
  }
  return std::chrono::milliseconds(number);
}

Result<uint32_t> numberIn(const char* name, const std::string& text) {
  uint32_t number = 0;
  const char* end = text.data() + text.size();
  auto [stop, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc() || stop != end) {
    return error(Code::invalidArgument, "{}=\"{}\": expected a whole number from 0", name, text);
  }
  return number;
}

Status checkValue(const Variable& variable) {
  using Form = Variable::Form;
  const auto value = valueOf(variable);
  if (!value) return Status();
  switch (variable.form) {
    case Form::milliseconds:
      return millisecondsOf(variable).status();
    case Form::choice:
      return checkChoice(variable, *value, "one of");
    case Form::choices:
      for (const auto& word : listOf(variable)) HMC_TRY(checkChoice(variable, word, "some of"));
      return Status();
    case Form::number:
      return value->empty() ? Status() : numberIn(variable.name, *value).status();
    case Form::files:
      return checkFiles(variable);
    case Form::ports:
      return portRangeFrom(*value).status().within(variable.name);
    case Form::text:
    case Form::secret:
      break;
  }
  return Status();
}

Status checkValuesOf(Variable::Reader reader) {
  std::string problems;
  for (const Variable* variable : kVariables) {
    const bool read = variable->reader == reader || variable->reader == Variable::Reader::everybody;
    if (!read || variable->form == Variable::Form::files) continue;
    const Status checked = checkValue(*variable);
    if (!checked.ok()) problems += (problems.empty() ? "" : "; ") + checked.message();
  }
  return problems.empty() ? Status() : Status(Code::invalidArgument, problems);
}

}  // namespace hmc
