#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>

#include "base/environment.h"

namespace hmc {

namespace {

// Never destroyed: a line may be logged while the process exits.
spdlog::logger& logger() {
  static auto* instance = [] {
    auto* made = new spdlog::logger("hmc", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%Y-%m-%d %H:%M:%S.%e hmc[%P] %l: %v");
    const bool sensible = checkValue(variable::kLog).ok();
    const std::string wanted = sensible ? valueOf(variable::kLog).value_or("") : "";
    made->set_level(spdlog::level::from_str(wanted.empty() ? variable::kLog.standard : wanted));
    return made;
  }();
  return *instance;
}

std::atomic<LogSink>& sink() {
  static std::atomic<LogSink> chosen{nullptr};
  return chosen;
}

}  // namespace

void setLogSink(LogSink chosen) {
  sink().store(chosen);
}

void setLogLevel(LogLevel level) {
  logger().set_level(static_cast<spdlog::level::level_enum>(level));
}

void logLine(LogLevel level, fmt::string_view format, fmt::format_args args) {
  static_assert(static_cast<int>(LogLevel::error) == spdlog::level::err);
  const auto theirs = static_cast<spdlog::level::level_enum>(level);
  if (!logger().should_log(theirs)) return;
  const std::string line = fmt::vformat(format, args);
  if (const LogSink chosen = sink().load()) {
    chosen(level, line.c_str());
  } else {
    logger().log(theirs, line);
  }
}

}  // namespace hmc
