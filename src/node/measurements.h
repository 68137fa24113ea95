#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "hmc/measurements.h"
#include "hmc/result.h"

namespace hmc {

// The measurements of one file:
//
//   version 1
//   tcp cpu put 4096 14250.5
//   tcp cpu put 4096 31000 away
class Measurements {
 public:
  static Result<Measurements> parse(const std::string& text);
  static Result<Measurements> read(const std::string& file);
  // Those of the file that HMC_MEASUREMENTS names; none where it is not set.
  static Result<Measurements> fromEnvironment();

  void merge(const std::vector<Measurement>& news);
  std::string text() const;
  // Through a file beside it that is renamed.
  Status write(const std::string& file) const;

  // The time for an operation of `size` bytes: measured, between two measured ones by
  // interpolation, below the smallest that one's, above the largest at its bandwidth.
  std::optional<double> find(const std::string& transport, DeviceKind kind,
                             const std::string& operation, size_t size, bool away = false) const;
  // That size was measured, or a smaller and a larger one.
  bool covers(const std::string& transport, DeviceKind kind, const std::string& operation,
              size_t size, bool away = false) const;

 private:
  // By transport, kind of memory, operation and "away": nanoseconds by size.
  std::map<std::tuple<std::string, DeviceKind, std::string, bool>, std::map<size_t, double>> times_;
};

}  // namespace hmc
