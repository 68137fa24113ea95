#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>

namespace hmc {

enum class LogLevel { debug, info, warn, error, off };

// Lines go to standard error, never to standard output. The level is HMC_LOG (debug, info, warn,
// error, off), warn when it is not set.
void logLine(LogLevel level, const std::string& text);
bool logEnabled(LogLevel level);

template <class... Args>
void logDebug(fmt::format_string<Args...> format, Args&&... args) {
  if (logEnabled(LogLevel::debug)) {
    logLine(LogLevel::debug, fmt::format(format, std::forward<Args>(args)...));
  }
}
template <class... Args>
void logInfo(fmt::format_string<Args...> format, Args&&... args) {
  if (logEnabled(LogLevel::info)) {
    logLine(LogLevel::info, fmt::format(format, std::forward<Args>(args)...));
  }
}
template <class... Args>
void logWarn(fmt::format_string<Args...> format, Args&&... args) {
  if (logEnabled(LogLevel::warn)) {
    logLine(LogLevel::warn, fmt::format(format, std::forward<Args>(args)...));
  }
}

}  // namespace hmc
