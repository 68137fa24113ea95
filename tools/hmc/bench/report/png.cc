#include "bench/report/png.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "bench/against/program.h"

namespace hmc::bench {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kLongest{60};

// The program and its words, with a white ground where it would leave none.
std::optional<std::vector<std::string>> converter(const std::string& from, const std::string& to) {
  const std::vector<std::vector<std::string>> known = {
      {"rsvg-convert", "--background-color=white", "-o", to, from},
      {"magick", from, to},
      {"convert", from, to},
      {"cairosvg", from, "-o", to}};
  for (const auto& words : known) {
    if (findProgram(words.front())) return words;
  }
  return std::nullopt;
}

// A file that is gone at the end.
class Scratch {
 public:
  explicit Scratch(const std::string& text) {
    std::error_code ignored;
    const fs::path folder = fs::temp_directory_path(ignored);
    std::string name = ((folder.empty() ? "/tmp" : folder) / "hmc-plot-XXXXXX.svg").string();
    const int fd = mkstemps(name.data(), 4);
    if (fd < 0) return;
    close(fd);
    path_ = name;
    written_ = static_cast<bool>(std::ofstream(path_) << text << std::flush);
  }
  ~Scratch() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }
  bool written() const { return written_; }

 private:
  std::string path_;
  bool written_ = false;
};

}  // namespace

bool isPng(const std::string& path) {
  return fs::path(path).extension() == ".png";
}

Status canWritePng() {
  if (converter("", "")) return Status();
  return Status(Code::unsupported,
                "a PNG needs a program that turns SVG into it: `apt install librsvg2-bin` (or "
                "imagemagick, or python3-cairosvg); a plot named .svg needs none");
}

Status writePng(const std::string& svg, const std::string& path) {
  if (Status able = canWritePng(); !able.ok()) return able;
  const Scratch drawing(svg);
  if (!drawing.written()) {
    return Status(Code::failed, "the plot could not be written to a temporary file");
  }
  auto done = runProgram({*converter(drawing.path(), path), {}}, Deadline(kLongest));
  if (done.ok()) return Status();
  return Status(done.status().code(), fmt::format("the plot could not be written to {}: {}", path,
                                                  done.status().message()));
}

}  // namespace hmc::bench
