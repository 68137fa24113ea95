#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hmc/figures.h"

namespace hmc {

// The figures of one file:
//
//   version 1
//   tcp cpu put 4096 14250.5
//   tcp cpu put 4096 31000 away
//
// Another version's file counts as empty, and is replaced when figures are saved.
class Figures {
 public:
  static Figures parse(std::string_view text);
  // Empty when there is no such file.
  static Figures read(const std::string& path);

  void merge(const std::vector<MeasuredFigure>& news);
  std::string text() const;
  // Through a file beside it that is renamed; makes the folder.
  Status write(const std::string& path) const;

  const std::vector<MeasuredFigure>& all() const { return figures_; }

  // The time for an operation of `size` bytes: measured, between two measured ones by
  // interpolation, below the smallest that one's, above the largest at its bandwidth.
  std::optional<double> find(const std::string& transport, DeviceKind kind,
                             const std::string& operation, size_t size, bool away = false) const;

 private:
  std::vector<MeasuredFigure> figures_;
};

}  // namespace hmc
