#include "contract/second_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/codec.h"
#include "base/error.h"
#include "base/random.h"

namespace hmc {

namespace {

constexpr const char* kVariable = "HMC_TEST_SHARE";

std::string encode(const Share& share, const std::vector<Fd>& inherited) {
  Writer writer;
  writer.u32(static_cast<uint32_t>(inherited.size()));
  for (const Fd& fd : inherited) writer.u32(static_cast<uint32_t>(fd.get()));
  writer.string(share.handle).u64(share.offset).u64(share.size);
  writer.u8(static_cast<uint8_t>(share.kind)).u8(static_cast<uint8_t>(share.purpose));
  for (uint8_t byte : share.device.bytes) writer.u8(byte);
  return hex(writer.bytes());
}

std::string unhex(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

std::string filterFor(const std::string& test) {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  std::string name = info->name();
  const size_t parameter = std::min(name.rfind('/'), name.size());
  return std::string("--gtest_filter=") + info->test_suite_name() + "." + test +
         name.substr(parameter);
}

// This program again, with more variables in its environment. -1 when it cannot be started.
pid_t spawnSelf(std::string filter, std::vector<std::string> more) {
  std::string self = "/proc/self/exe";
  std::string disabledToo = "--gtest_also_run_disabled_tests";
  char* arguments[] = {self.data(), filter.data(), disabledToo.data(), nullptr};
  std::vector<char*> variables;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('=') + 1);
    auto isSame = [&](const std::string& one) { return one.compare(0, name.size(), name) == 0; };
    // A test runner's wishes about reports and shards are not for the second process.
    const bool isRunners = name.substr(0, 6) == "GTEST_";
    if (!isRunners && std::none_of(more.begin(), more.end(), isSame)) variables.push_back(*entry);
  }
  for (std::string& variable : more) variables.push_back(variable.data());
  variables.push_back(nullptr);
  pid_t child = -1;
  int failed = posix_spawn(&child, self.c_str(), nullptr, nullptr, arguments, variables.data());
  return failed ? -1 : child;
}

}  // namespace

int SecondProcess::run(const std::string& test, const Share& share, const std::string& variable) {
  // Duplicates that survive exec.
  std::vector<Fd> inherited;
  for (const Fd& fd : share.fds) inherited.emplace_back(fcntl(fd.get(), F_DUPFD, 0));
  std::vector<std::string> more{std::string(kVariable) + "=" + encode(share, inherited)};
  if (!variable.empty()) more.push_back(variable);
  pid_t child = spawnSelf(filterFor(test), std::move(more));
  if (child < 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Result<Share> SecondProcess::inheritedShare() {
  const char* text = std::getenv(kVariable);
  if (!text) return error(Code::notFound, "this test runs only as a second process");
  std::string bytes = unhex(text);
  Reader reader(bytes);
  Share share;
  for (uint32_t left = reader.u32(); left > 0; --left) {
    share.fds.emplace_back(static_cast<int>(reader.u32()));
  }
  share.handle = reader.string();
  share.offset = reader.u64();
  share.size = reader.u64();
  share.kind = static_cast<DeviceKind>(reader.u8());
  share.purpose = static_cast<ShareFor>(reader.u8());
  for (uint8_t& byte : share.device.bytes) byte = reader.u8();
  HMC_TRY(reader.finish("the inherited share"));
  return share;
}

}  // namespace hmc
