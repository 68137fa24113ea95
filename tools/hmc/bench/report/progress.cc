#include "bench/report/progress.h"

#include <sys/ioctl.h>

#include <cerrno>
#include <cmath>
#include <numeric>

#include <fmt/core.h>

namespace hmc::bench {

namespace {

constexpr const char* kEraseLine = "\r\033[2K";
constexpr size_t kUsualWidth = 80;

// A line that wraps cannot be erased.
std::string cut(std::string line, int fd) {
  winsize size{};
  const bool known = ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  const size_t width = (known ? size.ws_col : kUsualWidth) - 1;
  if (line.size() > width) line.resize(width);
  return line;
}

// Progress that cannot be shown is no reason to stop measuring.
void print(int fd, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    ssize_t count = write(fd, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    done += static_cast<size_t>(count);
  }
}

}  // namespace

std::string progressLine(const std::string& what, size_t step, const std::vector<double>& seconds,
                         std::chrono::duration<double> elapsed) {
  if (seconds.empty()) return what;
  std::string line = fmt::format("[{}/{}] {}", step, seconds.size(), what);
  if (step < 1 || seconds.size() < step) return line;  // more than was known
  const auto now = seconds.begin() + static_cast<std::ptrdiff_t>(step - 1);
  const double done = std::accumulate(seconds.begin(), now, 0.0);
  // The first steps are short, and what they say about the machine is worth little.
  constexpr double kDoubt = 1;
  const double slower = (elapsed.count() + kDoubt) / (done + kDoubt);
  const double left = slower * std::accumulate(now, seconds.end(), 0.0);
  if (left >= 90) return fmt::format("{}, about {:.0f} min left", line, std::ceil(left / 60));
  return fmt::format("{}, about {:.0f} s left", line, std::ceil(left));
}

Progress::Progress(std::vector<double> seconds, int fd)
    : fd_(fd), shown_(isatty(fd) != 0), seconds_(std::move(seconds)) {}

Progress::~Progress() {
  erase();
}

void Progress::next(const std::string& what) {
  ++begun_;
  if (!shown_) return;
  print(fd_, kEraseLine + cut(progressLine(what, begun_, seconds_, Clock::now() - started_), fd_));
  drawn_ = true;
}

void Progress::erase() {
  if (drawn_) print(fd_, kEraseLine);
  drawn_ = false;
}

}  // namespace hmc::bench
