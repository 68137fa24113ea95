#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>

#include "process/process.h"

namespace hmc::test {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

// A port of 10000 to 29999 that nobody has now.
int freePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int port = 10000 + getpid() % 20000;
  for (at.sin_port = htons(static_cast<uint16_t>(port));
       bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof(at)) != 0;
       at.sin_port = htons(static_cast<uint16_t>(port))) {
    port = 10000 + (port - 10000 + 1) % 20000;
  }
  close(fd);
  return port;
}

struct Ended {
  int status;
  std::string output;
};

// Starts a rank for each set of variables, and answers how they ended.
std::vector<Ended> runRanks(const std::vector<Variables>& ranks) {
  std::vector<FILE*> pipes;
  for (const Variables& variables : ranks) {
    std::string line = "env";
    for (const auto& [name, value] : variables) line += " '" + name + "=" + value + "'";
    pipes.push_back(popen((line + " " HMC_TEST_POOL_RANK " meet 2>&1").c_str(), "r"));
  }
  std::vector<Ended> ended;
  for (FILE* pipe : pipes) {
    std::string output;
    for (int byte = fgetc(pipe); byte != EOF; byte = fgetc(pipe)) output += static_cast<char>(byte);
    const int status = pclose(pipe);
    ended.push_back({WIFEXITED(status) ? WEXITSTATUS(status) : -1, output});
  }
  return ended;
}

void expectAllMet(const std::vector<Variables>& ranks) {
  const auto ended = runRanks(ranks);
  for (size_t rank = 0; rank < ended.size(); ++rank) {
    EXPECT_EQ(ended[rank].status, 0) << "rank " << rank << ": " << ended[rank].output;
    EXPECT_THAT(ended[rank].output, HasSubstr("rank " + std::to_string(rank) + " of " +
                                              std::to_string(ranks.size()) + ": ok"));
  }
}

// Rank 0 serves the store and leaves first: the others still find it.
TEST(Launchers, RanksOfTorchrunMeetAtRankZero) {
  const int port = freePort();
  std::vector<Variables> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.push_back({{"RANK", std::to_string(rank)},
                     {"WORLD_SIZE", "4"},
                     {"LOCAL_WORLD_SIZE", "4"},
                     {"MASTER_ADDR", "127.0.0.1"},
                     {"MASTER_PORT", std::to_string(port + 10000)}});
  }
  expectAllMet(ranks);
}

TEST(Launchers, RanksOfMpirunOnOneHostMeetAtASocket) {
  std::vector<Variables> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.push_back({{"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
                     {"OMPI_COMM_WORLD_SIZE", "2"},
                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                     {"PMIX_NAMESPACE", "test-" + std::to_string(getpid()) + "@1"}});
  }
  expectAllMet(ranks);
}

TEST(Launchers, APodOfAnIndexedJobIsToldWhatIsMissing) {
  const auto ended = runRanks({{{"JOB_COMPLETION_INDEX", "0"}}});
  EXPECT_EQ(ended[0].status, 1);
  EXPECT_THAT(ended[0].output, HasSubstr("a Kubernetes indexed job"));
  EXPECT_THAT(ended[0].output, HasSubstr("HMC_POOL_STORE"));
}

}  // namespace
}  // namespace hmc::test
