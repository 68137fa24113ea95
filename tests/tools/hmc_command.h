#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>
#include <vector>

// The built program, as a user runs it.
namespace hmc::tool {

struct Outcome {
  int status = -1;
  std::string output;  // standard output, and standard error unless it was sent elsewhere
};

// `environment` is "NAME=value NAME=value".
inline Outcome hmcCommand(const std::string& arguments, const std::string& environment = "") {
  const std::string line =
      "env -u HMC_LOG " + environment + " " + HMC_COMMAND + " " + arguments + " 2>&1";
  FILE* pipe = popen(line.c_str(), "r");
  Outcome outcome;
  char bytes[4096];
  for (size_t count = fread(bytes, 1, sizeof(bytes), pipe); count > 0;
       count = fread(bytes, 1, sizeof(bytes), pipe)) {
    outcome.output.append(bytes, count);
  }
  const int status = pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

// It ends with that status, and its output has all these parts.
inline void expectHmc(const std::string& arguments, int status,
                      const std::vector<std::string>& parts = {},
                      const std::string& environment = "") {
  const Outcome outcome = hmcCommand(arguments, environment);
  EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.output;
  for (const auto& part : parts) EXPECT_THAT(outcome.output, testing::HasSubstr(part));
}

}  // namespace hmc::tool
