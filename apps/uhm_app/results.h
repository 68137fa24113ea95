#pragma once

#include <string>
#include <vector>

#include "mode.h"

namespace hmc::uhm {

// The times of one size.
struct Row {
  size_t bytes = 0;
  std::vector<double> nanoseconds;

  double median() const;
  double gigabitsPerSecond() const;
};

void printRow(const Row& row);

// Adds rows to a CSV file, which begins with the documented header. Throws std::runtime_error when
// the file cannot be written.
class Csv {
 public:
  Csv(std::string file, const Mode& mode);
  void add(const Row& row) const;

 private:
  void append(const std::string& line) const;
  const std::string file_;
  const std::string mode_;
};

}  // namespace hmc::uhm
