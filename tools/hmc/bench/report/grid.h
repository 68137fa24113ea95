#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hmc::bench {

enum class Paint { none, bold, faint, good, fair, bad };

struct Cell {
  std::string text;
  Paint paint = Paint::none;
};

// Rows of text under headings, as wide as they need to be.
class Grid {
 public:
  struct Column {
    std::string heading;
    bool right = false;  // numbers stand right
  };

  explicit Grid(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  // A column in which no row says anything is left out.
  std::string text(bool colour) const;

 private:
  std::vector<size_t> widths() const;

  const std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

std::string painted(const std::string& text, Paint paint, bool colour);

}  // namespace hmc::bench
