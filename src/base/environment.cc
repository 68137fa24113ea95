#include "base/environment.h"

#include <charconv>
#include <cstdlib>

#include "base/error.h"

namespace hmc {

std::optional<std::string> valueOf(const Variable& variable) {
  const char* value = std::getenv(variable.name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
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
  auto value = valueOf(variable);
  if (!value) return Status();
  if (variable.form == Variable::Form::milliseconds) return millisecondsOf(variable).status();
  const bool known =
      fmt::format(" {} ", variable.choices).find(" " + *value + " ") != std::string::npos;
  if (variable.form == Variable::Form::choice && !known) {
    return error(Code::invalidArgument, "{}=\"{}\": expected one of: {}", variable.name, *value,
                 variable.choices);
  }
  return Status();
}

}  // namespace hmc
