#include <climits>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <fmt/core.h>

#include "bench/against/competitors.h"
#include "program.h"
#include "try.h"

namespace hmc::bench {

namespace {

namespace fs = std::filesystem;

// A folder for what is compiled, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code ignored;
    fs::path parent = fs::temp_directory_path(ignored);
    std::string name = ((parent.empty() ? "/tmp" : parent) / "hmc-mpi-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) folder_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!folder_.empty()) fs::remove_all(folder_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return folder_; }

 private:
  fs::path folder_;
};

Result<std::string> compileAndRun(const Workload& workload) {
  TOOL_ASSIGN(const std::string source, tool::findOwnFile("share/hmc/mpi_window.c"));
  const TemporaryFolder folder;
  if (folder.path().empty()) return Status(Code::failed, "no temporary folder can be made");
  const std::string program = (folder.path() / "mpi_window").string();
  TOOL_TRY(
      tool::runProgram({{"mpicc", "-std=c99", "-O2", source, "-o", program}, {}}, workload.timeout)
          .status());
  std::vector<std::string> words{"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2",
                                 program};
  size_t runs = 0;
  for (size_t bytes : workload.sizes) {
    if (bytes == 0 || bytes > INT_MAX) continue;  // MPI counts in int
    words.push_back(std::to_string(bytes));
    ++runs;
  }
  return tool::runProgram({words, {}}, workload.timeout * (runs + 1));
}

// "4.1.4" from what `mpirun --version` prints; nothing when that is another MPI.
std::optional<std::string> parseOpenMpiVersion(const std::string& printed) {
  const std::string mark = "(Open MPI) ";
  const size_t at = printed.find(mark);
  if (at == std::string::npos) return std::nullopt;
  const size_t begin = at + mark.size();
  return printed.substr(begin, printed.find_first_of(" \r\n", begin) - begin);
}

}  // namespace

Comparison parseMpi(const std::string& printed, const std::string& who) {
  Comparison found;
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string window;
    std::string operation;
    std::string mode;
    size_t bytes = 0;
    double each = 0;
    if (!(words >> window >> operation >> mode >> bytes >> each)) continue;
    if (bytes == 0 || !(each > 0) || !std::isfinite(each)) continue;
    const Measurement about{.who = who,
                            .what = operation + " + flush",
                            .path = window == "shared" ? "shared window" : "window",
                            .bytes = bytes};
    mode == "one" ? found.addLatency(about, each) : found.addBandwidth(about, each);
  }
  return found;
}

Status runMpi(const Workload& workload, Progress& progress, Comparison& found) {
  for (const char* program : {"mpicc", "mpirun"})
    TOOL_TRY(tool::needProgram(program, "openmpi-bin libopenmpi-dev"));
  progress.expect(1);
  progress.next("Open MPI windows, all sizes");
  TOOL_ASSIGN(const std::string about,
              tool::runProgram({{"mpirun", "--version"}, {}}, workload.timeout));
  auto version = parseOpenMpiVersion(about);
  if (!version) {
    return Status(Code::unsupported,
                  "mpirun belongs to another MPI: apt install openmpi-bin libopenmpi-dev");
  }
  TOOL_ASSIGN(const std::string printed, compileAndRun(workload));
  const auto measured = parseMpi(printed, "Open MPI " + *version).measurements;
  if (measured.empty()) return tool::nothingMeasured("mpi_window", printed);
  found.measurements.insert(found.measurements.end(), measured.begin(), measured.end());
  return Status();
}

}  // namespace hmc::bench
