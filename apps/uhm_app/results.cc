#include "results.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <fmt/core.h>

#include "bench/report/units.h"
#include "bench/timing.h"

namespace hmc::uhm {

namespace {
constexpr const char* kHeader = "Mode,Data Size (MB),Time(us),Bandwidth(Gbps)";
constexpr double kMiB = 1 << 20;
}  // namespace

double Row::median() const {
  return bench::median(nanoseconds);
}

double Row::gigabitsPerSecond() const {
  return 8 * static_cast<double>(bytes) / median();
}

void printRow(const Row& row) {
  fmt::print("{:>10} {:>10} {:>10.3f} Gbps  verified\n", bench::sizeText(row.bytes),
             bench::timeText(row.median()), row.gigabitsPerSecond());
  std::fflush(stdout);
}

Csv::Csv(std::string file, const Mode& mode) : file_(std::move(file)), mode_(mode.name) {
  std::error_code missing;
  const bool begun = std::filesystem::file_size(file_, missing) > 0 && !missing;
  if (!begun) append(kHeader);
}

void Csv::add(const Row& row) const {
  append(fmt::format("{},{:.9g},{:.3f},{:.6g}", mode_, static_cast<double>(row.bytes) / kMiB,
                     row.median() / 1000, row.gigabitsPerSecond()));
}

void Csv::append(const std::string& line) const {
  std::ofstream out(file_, std::ios::app);
  if (!(out << line << "\n" << std::flush))
    throw std::runtime_error(fmt::format("cannot write {}: {}", file_, std::strerror(errno)));
}

}  // namespace hmc::uhm
