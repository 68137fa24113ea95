#include "node/figures.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <tuple>

#include "base/environment.h"
#include "base/error.h"

namespace hmc {

namespace {

constexpr const char* kVersionLine = "version 1";
constexpr const char* kAway = "away";

auto keyOf(const MeasuredFigure& figure) {
  return std::tie(figure.transport, figure.kind, figure.operation, figure.away, figure.size);
}

bool isWord(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c > ' '; });
}

bool makesSense(const MeasuredFigure& figure) {
  return isWord(figure.transport) && isWord(figure.operation) &&
         std::isfinite(figure.nanoseconds) && figure.nanoseconds > 0;
}

// The whole of `text` as a number.
template <class T>
bool parseNumber(const std::string& text, T& number) {
  const char* end = text.data() + text.size();
  auto [stop, problem] = std::from_chars(text.data(), end, number);
  return problem == std::errc() && stop == end;
}

std::optional<MeasuredFigure> parseLine(const std::string& line) {
  std::istringstream in(line);
  MeasuredFigure figure;
  std::string kind;
  std::string size;
  std::string nanoseconds;
  std::string more;
  in >> figure.transport >> kind >> figure.operation >> size >> nanoseconds;
  if (!in) return std::nullopt;
  figure.away = in >> more && more == kAway;
  if (!more.empty() && (!figure.away || in >> more)) return std::nullopt;
  const DeviceKind* known = findDeviceKind(kind);
  bool numbers = parseNumber(size, figure.size) && parseNumber(nanoseconds, figure.nanoseconds);
  if (!known || !numbers || !makesSense(figure)) return std::nullopt;
  figure.kind = *known;
  return figure;
}

}  // namespace

Figures Figures::parse(std::string_view text) {
  Figures figures;
  std::istringstream in{std::string(text)};
  std::string line;
  if (!std::getline(in, line) || line != kVersionLine) return figures;
  std::vector<MeasuredFigure> read;
  while (std::getline(in, line)) {
    if (auto figure = parseLine(line)) read.push_back(*figure);
  }
  figures.merge(read);
  return figures;
}

Figures Figures::read(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return parse(text.str());
}

void Figures::merge(const std::vector<MeasuredFigure>& news) {
  for (const auto& figure : news) {
    auto at = std::lower_bound(
        figures_.begin(), figures_.end(), figure,
        [](const auto& one, const auto& other) { return keyOf(one) < keyOf(other); });
    if (at != figures_.end() && keyOf(*at) == keyOf(figure)) {
      *at = figure;
    } else {
      figures_.insert(at, figure);
    }
  }
}

std::string Figures::text() const {
  std::string text = std::string(kVersionLine) + "\n";
  for (const auto& figure : figures_) {
    text += fmt::format("{} {} {} {} {}{}{}\n", figure.transport, deviceKindName(figure.kind),
                        figure.operation, figure.size, figure.nanoseconds, figure.away ? " " : "",
                        figure.away ? kAway : "");
  }
  return text;
}

Status Figures::write(const std::string& path) const {
  std::error_code problem;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, problem);
  if (problem) return errnoStatus("make the folder " + folder.string(), problem.value());
  const std::string beside = fmt::format("{}.{}", path, getpid());
  std::ofstream file(beside, std::ios::trunc);
  file << text();
  file.close();
  if (!file) {
    Status failed = errnoStatus("write " + beside);
    std::filesystem::remove(beside, problem);
    return failed;
  }
  std::filesystem::rename(beside, path, problem);
  return problem ? errnoStatus("rename " + beside + " to " + path, problem.value()) : Status();
}

std::optional<double> Figures::find(const std::string& transport, DeviceKind kind,
                                    const std::string& operation, size_t size, bool away) const {
  const MeasuredFigure wanted{transport, kind, operation, size, 0, away};
  auto sameButSize = [&](const MeasuredFigure& figure) {
    return figure.transport == transport && figure.kind == kind && figure.operation == operation &&
           figure.away == away;
  };
  // figures_ are in the order of keyOf(), so the two sizes around the wanted one are neighbours.
  auto next = std::lower_bound(
      figures_.begin(), figures_.end(), wanted,
      [](const auto& one, const auto& other) { return keyOf(one) < keyOf(other); });
  const MeasuredFigure* above = next != figures_.end() && sameButSize(*next) ? &*next : nullptr;
  const MeasuredFigure* below = nullptr;
  if (above != nullptr && above->size == size) {
    below = above;
  } else if (next != figures_.begin() && sameButSize(*std::prev(next))) {
    below = &*std::prev(next);
  }
  if (below == nullptr && above == nullptr) return std::nullopt;
  if (below == nullptr) return above->nanoseconds;
  if (above == nullptr) {
    const auto times =
        static_cast<double>(size) / static_cast<double>(std::max(below->size, size_t{1}));
    return below->nanoseconds * times;
  }
  if (above->size == below->size) return below->nanoseconds;
  const double part =
      static_cast<double>(size - below->size) / static_cast<double>(above->size - below->size);
  return below->nanoseconds + part * (above->nanoseconds - below->nanoseconds);
}

std::string figuresPath() {
  if (auto path = valueOf(variable::kFigures); path && !path->empty()) return *path;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return std::string(cache) + "/hmc/figures";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return std::string(home) + "/.cache/hmc/figures";
  return "";
}

Status saveFigures(const std::vector<MeasuredFigure>& figures) {
  for (const auto& figure : figures) {
    if (makesSense(figure)) continue;
    return error(Code::invalidArgument,
                 "a figure of {} ns for \"{}\" over \"{}\": names are one word each, times above 0",
                 figure.nanoseconds, figure.operation, figure.transport);
  }
  const std::string path = figuresPath();
  if (path.empty()) {
    return error(Code::notFound, "there is no place for figures: set HMC_FIGURES or HOME");
  }
  Figures all = Figures::read(path);
  all.merge(figures);
  return all.write(path);
}

std::vector<MeasuredFigure> loadFigures() {
  return Figures::read(figuresPath()).all();
}

}  // namespace hmc
