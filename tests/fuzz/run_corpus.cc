#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

// run_corpus FOLDER: every file of the folder through a fuzz target, whole, cut at every byte, and
// with bytes changed by a fixed seed. For compilers without libFuzzer.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

void run(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

void runVariants(const std::string& bytes, std::mt19937_64& random) {
  for (size_t size = 0; size <= bytes.size(); ++size) run(bytes.substr(0, size));
  if (bytes.empty()) return;
  for (int round = 0; round < 2000; ++round) {
    std::string changed = bytes;
    for (uint64_t i = random() % 4; i > 0; --i) {
      changed[random() % changed.size()] = static_cast<char>(random());
    }
    run(changed);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "run_corpus FOLDER\n");
    return 2;
  }
  std::mt19937_64 random(4);
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::ifstream file(entry.path(), std::ios::binary);
    runVariants(std::string(std::istreambuf_iterator<char>(file), {}), random);
    ++files;
  }
  std::printf("%zu files\n", files);
  return files > 0 ? 0 : 1;
}
