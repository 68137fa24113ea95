#include "bench/report/grid.h"

#include <algorithm>

namespace hmc::bench {

namespace {

// The terminal's escape codes, in the order of Paint.
constexpr const char* kEscapes[] = {"", "\033[1m", "\033[2m", "\033[32m", "\033[33m", "\033[1;31m"};

// How many columns of a terminal UTF-8 text takes: bytes that continue a character take none.
size_t shownWidth(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, size_t width, bool right, bool last) {
  const std::string space(width - std::min(width, shownWidth(text)), ' ');
  if (right) return space + text;
  return last ? text : text + space;  // nothing invisible at the end of a line
}

}  // namespace

std::string painted(const std::string& text, Paint paint, bool colour) {
  if (!colour || paint == Paint::none || text.empty()) return text;
  return kEscapes[static_cast<size_t>(paint)] + text + "\033[0m";
}

std::vector<size_t> Grid::widths() const {
  std::vector<size_t> widest(columns_.size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i)
      widest[i] = std::max(widest[i], shownWidth(row[i].text));
  }
  for (size_t i = 0; i < widest.size(); ++i) {
    if (widest[i] > 0) widest[i] = std::max(widest[i], shownWidth(columns_[i].heading));
  }
  return widest;
}

std::string Grid::text(bool colour) const {
  const auto widest = widths();
  size_t last = 0;
  for (size_t i = 0; i < widest.size(); ++i) last = widest[i] > 0 ? i : last;
  std::string out;
  auto line = [&](auto cellAt) {
    for (size_t i = 0; i < widest.size(); ++i) {
      if (widest[i] == 0) continue;
      Cell cell = cellAt(i);
      out += "  ";
      out +=
          painted(padded(cell.text, widest[i], columns_[i].right, i == last), cell.paint, colour);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  };
  line([&](size_t i) { return Cell{columns_[i].heading, Paint::faint}; });
  for (const auto& row : rows_) {
    line([&](size_t i) { return i < row.size() ? row[i] : Cell{}; });
  }
  return out;
}

}  // namespace hmc::bench
