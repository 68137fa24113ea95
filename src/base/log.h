#pragma once

#include <fmt/core.h>

#include "hmc/log.h"

namespace hmc {

// Lines go to the logger that was set (hmc/log.h), else to standard error, never to standard
// output. The level is HMC_LOG (debug, info, warn, error, off), warn when it is not set.
void logLine(LogLevel level, fmt::string_view format, fmt::format_args args);

template <class... Args>
void logDebug(fmt::format_string<Args...> format, Args&&... args) {
  logLine(LogLevel::debug, format, fmt::make_format_args(args...));
}
template <class... Args>
void logInfo(fmt::format_string<Args...> format, Args&&... args) {
  logLine(LogLevel::info, format, fmt::make_format_args(args...));
}
template <class... Args>
void logWarn(fmt::format_string<Args...> format, Args&&... args) {
  logLine(LogLevel::warn, format, fmt::make_format_args(args...));
}

}  // namespace hmc
