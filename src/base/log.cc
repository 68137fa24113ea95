#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>
#include <utility>

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

// Never destroyed either.
struct Chosen {
  std::mutex mutex;
  std::shared_ptr<const Logger> logger;
};
Chosen& chosen() {
  static auto* instance = new Chosen;
  return *instance;
}

// False where there is none, or it throws.
bool toTheirs(LogLevel level, const std::string& line) {
  std::unique_lock lock(chosen().mutex);
  const std::shared_ptr<const Logger> theirs = chosen().logger;
  lock.unlock();
  try {
    if (theirs) (*theirs)(level, line);
    return theirs != nullptr;
  } catch (...) {
    return false;
  }
}

}  // namespace

void setLogger(Logger given) {
  auto made = given ? std::make_shared<const Logger>(std::move(given)) : nullptr;
  std::lock_guard lock(chosen().mutex);
  chosen().logger.swap(made);  // the one before goes when the lock is free again
}

void setLogLevel(LogLevel level) {
  logger().set_level(static_cast<spdlog::level::level_enum>(level));
}

void logLine(LogLevel level, fmt::string_view format, fmt::format_args args) {
  static_assert(static_cast<int>(LogLevel::error) == spdlog::level::err);
  const auto theirs = static_cast<spdlog::level::level_enum>(level);
  if (!logger().should_log(theirs)) return;
  const std::string line = fmt::vformat(format, args);
  if (!toTheirs(level, line)) logger().log(theirs, line);
}

}  // namespace hmc
