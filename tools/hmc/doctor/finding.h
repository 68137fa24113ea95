#pragma once

#include <string>
#include <vector>

namespace hmc::tool {

// ok: works. warn: works, but not as well as it could. fail: the default path does not work.
enum class Level { ok, warn, fail };

// The result of one check.
struct Finding {
  Level level = Level::ok;
  std::string what;    // "memlock", a few words
  std::string detail;  // what it found, a sentence
  std::string fix;     // the command that fixes it; empty when all is well
};

// No finding is a failure.
bool healthy(const std::vector<Finding>& findings);

// A line each, and a line with the fix where there is one.
std::string toText(const Finding& finding);
// {"version", "healthy", "findings": [{"level", "what", "detail", "fix"}]}
std::string toJson(const std::vector<Finding>& findings);

}  // namespace hmc::tool
