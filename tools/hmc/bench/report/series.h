#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/figure.h"

namespace hmc::bench {

// One line of a plot: a value over the size of an operation.
struct Series {
  std::string label;  // "hmc put, ipc"; a ceiling has its own name
  bool ours = false;
  std::map<size_t, double> points;
};

// The lines of one unit, and the ceilings that belong to them.
struct Panel {
  std::vector<Series> measured;
  std::vector<Series> ceilings;
};

// What was measured at one size only is left out, unless there is nothing else. So is what a
// logarithmic axis cannot show: sizes and values of zero.
Panel panelOf(const Run& run, Unit unit);

}  // namespace hmc::bench
