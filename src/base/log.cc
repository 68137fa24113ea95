#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "base/environment.h"

namespace hmc {

namespace {

spdlog::level::level_enum toSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      return spdlog::level::off;
  }
  return spdlog::level::off;
}

// Never destroyed: a line may be logged while the process exits.
spdlog::logger& logger() {
  static auto* instance = [] {
    auto* made = new spdlog::logger("hmc", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%Y-%m-%d %H:%M:%S.%e hmc[%P] %l: %v");
    const auto wanted = valueOf(variable::kLog);
    made->set_level(spdlog::level::from_str(wanted.value_or(variable::kLog.standard)));
    return made;
  }();
  return *instance;
}

}  // namespace

void logLine(LogLevel level, const std::string& text) {
  logger().log(toSpdlog(level), text);
}

bool logEnabled(LogLevel level) {
  return logger().should_log(toSpdlog(level));
}

}  // namespace hmc
