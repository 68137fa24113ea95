#pragma once

#include <fmt/core.h>

namespace hmc {

enum class LogLevel { debug = 1, info, warn, error };  // spdlog's numbers

// Lines go to standard error, never to standard output. The level is HMC_LOG (debug, info, warn,
// error, off), warn when it is not set.
void logLine(LogLevel level, fmt::string_view format, fmt::format_args args);

// For libraries whose users may ask for it: lines go there instead, from any thread.
using LogSink = void (*)(LogLevel level, const char* line);
void setLogSink(LogSink sink);
// Drops lines below that level, whatever HMC_LOG says.
void setLogLevel(LogLevel level);

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
