#pragma once

#include "hmc/cpp14.h"

#include <functional>
#include <string>

#include "hmc/export.h"

namespace hmc {

/// How much a line matters.
enum class LogLevel { debug = 1, info, warn, error };

/// Takes the lines of this library.
using Logger = std::function<void(LogLevel level, const std::string& line)>;

/// Lines of this process go there instead of to standard error, from any thread and possibly
/// several at once; an empty one brings standard error back. It may be called with locks of this
/// library held: it must not call this library, and throws in vain. One line that another thread
/// has begun may still go to the logger before.
HMC_API void setLogger(Logger logger);

/// Drops lines below that level, whatever HMC_LOG says.
HMC_API void setLogLevel(LogLevel level);

}  // namespace hmc
