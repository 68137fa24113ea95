#include "bench/report/progress.h"

#include <sys/ioctl.h>

#include <cerrno>
#include <cmath>

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

std::string progressLine(const std::string& what, size_t step, size_t steps,
                         std::chrono::duration<double> elapsed) {
  std::string line = steps == 0 ? what : fmt::format("[{}/{}] {}", step, steps, what);
  if (step < 2 || steps < step) return line;  // nothing to judge by yet
  const double left =
      elapsed.count() / static_cast<double>(step - 1) * static_cast<double>(steps - step + 1);
  if (left >= 90) return fmt::format("{}, about {:.0f} min left", line, std::ceil(left / 60));
  return fmt::format("{}, about {:.0f} s left", line, std::ceil(left));
}

Progress::Progress(size_t steps, int fd) : fd_(fd), shown_(isatty(fd) != 0), steps_(steps) {}

Progress::~Progress() {
  erase();
}

void Progress::next(const std::string& what) {
  ++begun_;
  if (!shown_) return;
  print(fd_, kEraseLine + cut(progressLine(what, begun_, steps_, Clock::now() - started_), fd_));
  drawn_ = true;
}

void Progress::erase() {
  if (drawn_) print(fd_, kEraseLine);
  drawn_ = false;
}

}  // namespace hmc::bench
