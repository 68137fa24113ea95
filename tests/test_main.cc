// main() of the programs that consist of several files of tests. PROGRAM --file=NAME.cc... runs the
// cases of those files, so that each file gets a process of its own; without it, all cases run.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

std::vector<std::string> filesNamedIn(int argc, char** argv) {
  constexpr std::string_view kOption = "--file=";
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.substr(0, kOption.size()) != kOption) continue;
    const std::string_view path = argument.substr(kOption.size());
    files.push_back("/" + std::string(path.substr(path.rfind('/') + 1)));
  }
  return files;
}

bool endsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// What --gtest_filter takes to run the cases of `files`.
std::string filterFor(const std::vector<std::string>& files) {
  std::string filter;
  const auto& program = *testing::UnitTest::GetInstance();
  for (int i = 0; i < program.total_test_suite_count(); ++i) {
    const auto& suite = *program.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const auto& test = *suite.GetTestInfo(j);
      const bool isIn = std::any_of(files.begin(), files.end(), [&](const std::string& file) {
        return endsWith(test.file(), file);
      });
      if (isIn) filter += std::string(suite.name()) + "." + test.name() + ":";
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const auto files = filesNamedIn(argc, argv);
  // A filter is more exact than a file; a death test's own process gets both.
  if (!files.empty() && testing::GTEST_FLAG(filter) == "*") {
    testing::GTEST_FLAG(filter) = filterFor(files);
    if (testing::GTEST_FLAG(filter).empty()) {
      std::fprintf(stderr, "%s: no test is in %s\n", argv[0], files[0].c_str() + 1);
      return 1;
    }
  }
  return RUN_ALL_TESTS();
}
