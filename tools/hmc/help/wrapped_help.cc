#include "help/wrapped_help.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace hmc::tool {

namespace {

constexpr size_t kUsualWidth = 80;
constexpr size_t kLeastWidth = 40;  // below this, columns make no sense

// Where the text of the second column begins. Where there is one column that is indented, further
// in than it, so that what goes on does not look like the next option.
size_t hangOf(const std::string& line) {
  constexpr size_t kOptionIndent = 2;
  const size_t first = std::min(line.find_first_not_of(' '), line.size());
  const size_t gap = line.find("  ", first);
  if (gap == std::string::npos) return first == kOptionIndent ? 3 * kOptionIndent : first;
  return std::min(line.find_first_not_of(' ', gap), line.size());
}

void wrap(const std::string& line, size_t width, std::string& into) {
  const size_t hang = std::min(hangOf(line), width / 2);
  size_t begin = 0;
  size_t indent = 0;
  while (line.size() - begin + indent > width) {
    const size_t most = begin + width - indent;
    // The first line may not end before its second column has begun.
    const size_t least = begin + (begin == 0 ? hang : 1);
    const size_t space = line.rfind(' ', most);
    const bool found = space != std::string::npos && space >= least;
    const size_t end = found ? space : line.find(' ', most);
    if (end == std::string::npos) break;
    into += std::string(indent, ' ') + line.substr(begin, end - begin) + "\n";
    begin = std::min(line.find_first_not_of(' ', end), line.size());
    indent = hang;
  }
  into += std::string(indent, ' ') + line.substr(begin) + "\n";
}

}  // namespace

std::string wrapped(const std::string& text, size_t width) {
  std::istringstream in(text);
  std::string out;
  bool examples = false;
  for (std::string line; std::getline(in, line);) {
    examples = examples ? line.rfind("  ", 0) == 0 : line == "Examples:";
    if (examples) {
      out += line + "\n";
    } else {
      wrap(line, std::max(width, kLeastWidth), out);
    }
  }
  return out;
}

size_t columnsOfOutput() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const long said = columns == nullptr ? 0 : std::strtol(columns, nullptr, 10);
  return said > 0 ? static_cast<size_t>(said) : kUsualWidth;
}

}  // namespace hmc::tool
