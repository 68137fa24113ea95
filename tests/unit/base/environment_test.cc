#include "base/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <tuple>
#include <vector>

namespace hmc {
namespace {

using testing::HasSubstr;

// Sets a variable for one test.
class Set {
 public:
  Set(const Variable& variable, const char* value) : variable_(variable) {
    setenv(variable.name, value, 1);
  }
  ~Set() { unsetenv(variable_.name); }

 private:
  const Variable& variable_;
};

// The cells of a row of a Markdown table, without the marks of code.
std::vector<std::string> cells(std::string line) {
  line.erase(std::remove(line.begin(), line.end(), '`'), line.end());
  std::vector<std::string> found;
  size_t at = 1;
  for (size_t end = line.find('|', at); end != std::string::npos; end = line.find('|', at)) {
    std::string cell = line.substr(at, end - at);
    size_t first = cell.find_first_not_of(' ');
    found.push_back(cell.substr(first, cell.find_last_not_of(' ') - first + 1));
    at = end + 1;
  }
  return found;
}

TEST(Environment, isDocumentedAsItIs) {
  std::ifstream page(HMC_SOURCE_DIR "/docs/gotchas.md");
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("| `HMC_", 0) == 0) rows.push_back(cells(line));
  }
  ASSERT_EQ(rows.size(), std::size(kVariables));
  for (size_t i = 0; i < rows.size(); ++i) {
    const Variable& variable = *kVariables[i];
    EXPECT_EQ(rows[i], (std::vector<std::string>{variable.name, variable.meaning, variable.standard,
                                                 readerName(variable.reader)}));
  }
}

TEST(Environment, everyVariableIsListedOnceAndItsStandardMakesSense) {
  std::set<std::string> names;
  for (const Variable* variable : kVariables) {
    EXPECT_TRUE(names.insert(variable->name).second) << variable->name;
    // Elsewhere the standard is a description.
    if (variable->form != Variable::Form::milliseconds && variable->form != Variable::Form::choice)
      continue;
    if (variable == &variable::kRdmaMtu) continue;
    Set set(*variable, variable->standard);
    EXPECT_TRUE(checkValue(*variable).ok()) << variable->name;
  }
}

TEST(Environment, anUnsetVariableHasNoValueAndItsStandard) {
  unsetenv(variable::kTimeout.name);
  EXPECT_FALSE(valueOf(variable::kTimeout));
  EXPECT_EQ(*millisecondsOf(variable::kTimeout), std::chrono::milliseconds(30000));
  Set set(variable::kTimeout, "12");
  EXPECT_EQ(valueOf(variable::kTimeout), "12");
  EXPECT_EQ(*millisecondsOf(variable::kTimeout), std::chrono::milliseconds(12));
}

TEST(Environment, valuesThatMakeNoSenseAreNamed) {
  for (const char* wrong : {"", "0", "-1", "ten", "10s", "99999999999999999999"}) {
    Set set(variable::kLease, wrong);
    Status status = checkValue(variable::kLease);
    EXPECT_EQ(status.code(), Code::invalidArgument) << wrong;
    EXPECT_THAT(status.message(), HasSubstr("HMC_LEASE_MS=\"" + std::string(wrong) + "\""));
  }
  for (const auto& [variable, wrong, words] :
       std::vector<std::tuple<const Variable*, const char*, const char*>>{
           {&variable::kTransports, "tcp,pigeon", "some of: ipc verbs ucx tcp"},
           {&variable::kRdmaMtu, "77", "256 512 1024"},
           {&variable::kPoolRank, "-1", "a whole number"},
           {&variable::kMeasurements, "/no/such/file", "No such file"},
           {&variable::kMemoryPlugin, "/bin/sh:/no/such/plugin.so", "/no/such/plugin.so"}}) {
    Set set(*variable, wrong);
    EXPECT_THAT(checkValue(*variable).message(), testing::StartsWith(variable->name));
    EXPECT_THAT(checkValue(*variable).message(), HasSubstr(words));
  }
  for (const Variable* variable : {&variable::kTransports, &variable::kRdmaGidIndex}) {
    Set set(*variable, "");
    EXPECT_TRUE(checkValue(*variable).ok()) << variable->name;
  }
  Set set(variable::kLog, "loud");
  EXPECT_THAT(checkValue(variable::kLog).message(), HasSubstr("debug info warn error off"));
}

}  // namespace
}  // namespace hmc
