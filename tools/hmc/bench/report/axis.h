#pragma once

#include <string>
#include <vector>

namespace hmc::bench {

struct Tick {
  double value = 0;
  std::string label;  // empty for a minor tick
};

// From values to pixels, and where the marks are.
class Axis {
 public:
  // Sizes, logarithmic, a mark at each power of two.
  static Axis sizes(double smallest, double largest);
  // Nanoseconds, logarithmic, labels at powers of ten.
  static Axis times(double smallest, double largest);
  // GB/s, linear, from zero.
  static Axis speeds(double largest);

  // The axis runs from pixel `from` to pixel `to`.
  void place(double from, double to);
  double pixel(double value) const;
  const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  Axis(bool logarithmic, double low, double high);
  double scaled(double value) const;

  const bool logarithmic_;
  const double low_;
  const double high_;
  double from_ = 0;
  double to_ = 1;
  std::vector<Tick> ticks_;
};

}  // namespace hmc::bench
