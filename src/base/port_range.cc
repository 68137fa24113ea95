#include "base/port_range.h"

#include <charconv>

#include "base/error.h"

namespace hmc {

Result<PortRange> portRangeFrom(const std::string& text) {
  PortRange range;
  if (text.empty()) return range;
  const char* const end = text.data() + text.size();
  std::from_chars_result read = std::from_chars(text.data(), end, range.first);
  range.last = range.first;
  if (read.ec == std::errc() && read.ptr != end && *read.ptr == '-')
    read = std::from_chars(read.ptr + 1, end, range.last);
  if (read.ec == std::errc() && read.ptr == end && range.first > 0 && range.first <= range.last)
    return range;
  return error(
      Code::invalidArgument,
      "the data ports \"{}\" are no range: write 20000-20015, or one port, from 1 to 65535", text);
}

}  // namespace hmc
