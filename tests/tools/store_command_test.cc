#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "fakes/must.h"
#include "store/store.h"
#include "tools/hmc_command.h"

namespace hmc::tool {
namespace {

using test::must;

constexpr std::chrono::seconds kLong{60};

// A running `hmc store`.
class StoreProcess {
 public:
  explicit StoreProcess(const std::vector<std::string>& options) {
    int ends[2];
    if (pipe(ends) != 0) abort();
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      std::vector<const char*> words{HMC_COMMAND, "store"};
      for (const auto& option : options) words.push_back(option.c_str());
      words.push_back(nullptr);
      execv(HMC_COMMAND, const_cast<char**>(words.data()));
      _exit(127);
    }
    close(ends[1]);
    FILE* output = fdopen(ends[0], "r");
    for (int byte = fgetc(output); byte != EOF && byte != '\n'; byte = fgetc(output)) {
      address += static_cast<char>(byte);
    }
    fclose(output);
  }
  ~StoreProcess() {
    if (pid_ > 0) end(SIGKILL);
  }

  // The exit status, -1 for a violent end.
  int end(int signal) {
    kill(pid_, signal);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::string address;

 private:
  pid_t pid_ = -1;
};

TEST(StoreCommand, PrintsItsAddressServesAndEndsOnASignal) {
  for (int signal : {SIGINT, SIGTERM}) {
    StoreProcess process({});
    EXPECT_THAT(process.address, testing::StartsWith("tcp://127.0.0.1:"));
    auto store = must(store::openStore(process.address, {}, kLong));
    EXPECT_TRUE(store->set("key", "value", kLong).ok());
    EXPECT_EQ(must(store->get("key", kLong)), "value");
    EXPECT_EQ(process.end(signal), 0);
  }
}

TEST(StoreCommand, ItsClientsGoOnWhenItIsKilledAndStartedAgain) {
  auto first = std::make_unique<StoreProcess>(std::vector<std::string>{});
  const std::string address = first->address;
  auto store = must(store::openStore(address, {}, kLong));
  auto lease = must(store->lease(kLong, kLong));
  ASSERT_TRUE(store->set("held", "1", kLong, lease).ok());
  EXPECT_EQ(first->end(SIGKILL), -1);
  StoreProcess second({"--listen", address});
  ASSERT_EQ(second.address, address);
  auto other = must(store::openStore(address, {}, kLong));
  EXPECT_EQ(must(other->await("held", kLong)), "1");
}

TEST(StoreCommand, WithAFolderNothingThatWasAnsweredIsLostWhenItIsKilled) {
  const std::string folder = testing::TempDir() + "hmc_store_data_" + std::to_string(getpid());
  auto process = std::make_unique<StoreProcess>(std::vector<std::string>{"--data", folder});
  const std::string address = process->address;
  std::atomic<size_t> answered{0};
  std::jthread writer([&](const std::stop_token& stop) {
    auto store = must(store::openStore(address, {}, kLong));
    while (!stop.stop_requested()) {
      const std::string key = "key" + std::to_string(answered);
      if (!store->set(key, std::string(3000, 'x'), kLong).ok()) return;
      ++answered;
    }
  });
  for (size_t round = 1; round <= 5; ++round) {
    while (answered < 40 * round) std::this_thread::yield();
    process->end(SIGKILL);
    const size_t before = answered;
    process = std::make_unique<StoreProcess>(
        std::vector<std::string>{"--listen", address, "--data", folder});
    ASSERT_EQ(process->address, address);
    auto store = must(store::openStore(address, {}, kLong));
    for (size_t i = 0; i < before; ++i) {
      ASSERT_TRUE(store->get("key" + std::to_string(i), kLong).ok()) << i << " of " << before;
    }
  }
  writer.request_stop();
  writer.join();
  process.reset();
  std::filesystem::remove_all(folder);
}

TEST(StoreCommand, TheSecretComesFromAFileOrTheEnvironment) {
  const std::string path = testing::TempDir() + "hmc_store_secret_" + std::to_string(getpid());
  std::ofstream(path) << "from the file\n";
  {
    StoreProcess process({"--secret-file", path});
    EXPECT_TRUE(store::openStore(process.address, {.secret = "from the file"}, kLong).ok());
    EXPECT_EQ(store::openStore(process.address, {}, kLong).status().code(), Code::permissionDenied);
  }
  std::remove(path.c_str());
  setenv("HMC_SECRET", "from the environment", 1);
  StoreProcess process({});
  unsetenv("HMC_SECRET");
  EXPECT_TRUE(store::openStore(process.address, {.secret = "from the environment"}, kLong).ok());
}

TEST(StoreCommand, AWrongCommandLineEndsWithTwoAndASentence) {
  expectHmc("store --listen http://x", 2, {"http://x"});
  expectHmc("store --listen", 2, {"hmc store --listen tcp://0.0.0.0:7000"});
  expectHmc("store --secret-file /nonexistent", 2, {"/nonexistent is empty or cannot be read"});
  expectHmc("store --capacity many", 2, {"hmc store --help"});
}

TEST(StoreCommand, AnAddressInUseEndsWithOneAndASentence) {
  StoreProcess process({});
  expectHmc("store --listen " + process.address, 1, {"in use"});
}

}  // namespace
}  // namespace hmc::tool
