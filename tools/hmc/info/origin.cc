#include "info/origin.h"

#include <filesystem>
#include <fstream>

#include <fmt/core.h>

#include "program.h"

namespace hmc::tool {

namespace fs = std::filesystem;

std::string installedFrom() {
  // One line, written when a wheel is made (python/build_backend/archive.py).
  if (auto note = findOwnFile("share/hmc/installed"); note.ok()) {
    std::string line;
    std::ifstream file(*note);
    std::getline(file, line);
    const fs::path package = fs::path(*note).parent_path().parent_path().parent_path();
    return fmt::format("{}, in {}", line, package.string());
  }
  if (auto cache = findOwnFile("CMakeCache.txt"); cache.ok())
    return fmt::format("build folder {}", fs::path(*cache).parent_path().string());
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  return fmt::format("prefix {}", program.parent_path().parent_path().string());
}

}  // namespace hmc::tool
