#include "node/measurements.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/environment.h"
#include "base/error.h"

namespace hmc {

namespace {

constexpr const char* kVersionLine = "version 1";
constexpr const char* kAway = "away";

bool isWord(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c > ' '; });
}

bool isValid(const Measurement& one) {
  return isWord(one.transport) && isWord(one.operation) && std::isfinite(one.nanoseconds) &&
         one.nanoseconds > 0;
}

template <class T>
bool parseWhole(const std::string& text, T& number) {
  const char* end = text.data() + text.size();
  auto [stop, problem] = std::from_chars(text.data(), end, number);
  return problem == std::errc() && stop == end;
}

std::optional<Measurement> parseLine(const std::string& line) {
  std::istringstream in(line);
  Measurement one;
  std::string kind;
  std::string size;
  std::string nanoseconds;
  std::string more;
  in >> one.transport >> kind >> one.operation >> size >> nanoseconds;
  if (!in) return std::nullopt;
  one.away = in >> more && more == kAway;
  if (!more.empty() && (!one.away || in >> more)) return std::nullopt;
  const DeviceKind* known = findDeviceKind(kind);
  bool numbers = parseWhole(size, one.size) && parseWhole(nanoseconds, one.nanoseconds);
  if (!known || !numbers || !isValid(one)) return std::nullopt;
  one.kind = *known;
  return one;
}

}  // namespace

Result<Measurements> Measurements::parse(const std::string& text) {
  std::istringstream in(text);
  std::string line;
  if (!std::getline(in, line) || line != kVersionLine) {
    return error(Code::invalidArgument,
                 "a file of measurements begins with the line \"{}\", this one with \"{}\"",
                 kVersionLine, line.substr(0, 40));
  }
  Measurements all;
  for (int number = 2; std::getline(in, line); ++number) {
    auto one = parseLine(line);
    if (!one) {
      return error(Code::invalidArgument,
                   "line {}, \"{}\": expected transport, kind of memory, operation, bytes, "
                   "nanoseconds and perhaps \"away\"",
                   number, line.substr(0, 80));
    }
    all.merge({*one});
  }
  return all;
}

Result<Measurements> Measurements::read(const std::string& file) {
  std::ifstream in(file);
  if (!in) return errnoStatus("open " + file);
  std::ostringstream text;
  text << in.rdbuf();
  auto all = parse(text.str());
  if (!all.ok()) return all.status().within(file);
  return all;
}

Result<Measurements> Measurements::fromEnvironment() {
  auto file = valueOf(variable::kMeasurements);
  if (!file || file->empty()) return Measurements();
  auto all = read(*file);
  if (!all.ok()) {
    return error(all.status().code(),
                 "{}: {}; unset the variable, or make the file: hmc bench --all-paths --save FILE",
                 variable::kMeasurements.name, all.status().message());
  }
  return all;
}

void Measurements::merge(const std::vector<Measurement>& news) {
  for (const auto& one : news)
    times_[{one.transport, one.kind, one.operation, one.away}][one.size] = one.nanoseconds;
}

std::string Measurements::text() const {
  std::string text = std::string(kVersionLine) + "\n";
  for (const auto& [key, bySize] : times_) {
    const auto& [transport, kind, operation, away] = key;
    for (const auto& [size, nanoseconds] : bySize) {
      text += fmt::format("{} {} {} {} {}{}{}\n", transport, deviceKindName(kind), operation, size,
                          nanoseconds, away ? " " : "", away ? kAway : "");
    }
  }
  return text;
}

Status Measurements::write(const std::string& file) const {
  const std::string beside = fmt::format("{}.{}", file, getpid());
  std::ofstream out(beside, std::ios::trunc);
  out << text();
  out.close();
  std::error_code problem;
  if (!out) {
    Status failed = errnoStatus("write " + beside);
    std::filesystem::remove(beside, problem);
    return failed;
  }
  std::filesystem::rename(beside, file, problem);
  return problem ? errnoStatus("rename " + beside + " to " + file, problem.value()) : Status();
}

std::optional<double> Measurements::find(const std::string& transport, DeviceKind kind,
                                         const std::string& operation, size_t size,
                                         bool away) const {
  auto found = times_.find({transport, kind, operation, away});
  if (found == times_.end()) return std::nullopt;
  const auto& bySize = found->second;
  auto above = bySize.lower_bound(size);
  if (above == bySize.begin() || (above != bySize.end() && above->first == size))
    return above->second;
  auto below = std::prev(above);
  const auto from = static_cast<double>(below->first);
  const auto wanted = static_cast<double>(size);
  if (above == bySize.end()) return below->second * wanted / std::max(from, 1.0);
  const double part = (wanted - from) / (static_cast<double>(above->first) - from);
  return below->second + part * (above->second - below->second);
}

bool Measurements::covers(const std::string& transport, DeviceKind kind,
                          const std::string& operation, size_t size, bool away) const {
  const auto found = times_.find({transport, kind, operation, away});
  return found != times_.end() && found->second.begin()->first <= size &&
         size <= found->second.rbegin()->first;
}

Status saveMeasurements(const std::string& file, const std::vector<Measurement>& measurements) {
  for (const auto& one : measurements) {
    if (isValid(one)) continue;
    return error(Code::invalidArgument,
                 "a time of {} ns for \"{}\" over \"{}\": names are one word each, times above 0",
                 one.nanoseconds, one.operation, one.transport);
  }
  Measurements all;
  if (access(file.c_str(), F_OK) == 0) {
    HMC_ASSIGN(all, Measurements::read(file));
  }
  all.merge(measurements);
  return all.write(file);
}

}  // namespace hmc
