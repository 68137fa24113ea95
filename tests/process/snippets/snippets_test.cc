#include <gtest/gtest.h>

#include "peer.h"

namespace hmc::test {
namespace {

std::vector<std::string> snippet(const std::string& name, std::vector<uint16_t> ports = {}) {
  std::vector<std::string> command{HMC_SNIPPETS + name};
  for (uint16_t port : ports) command.push_back(std::to_string(port));
  return command;
}

TEST(Snippet, minimalPutHasDeliveredWhenItReturnsFromMain) {
  Peer server;
  ASSERT_TRUE(server.serve(size_t{32} << 20, "UCX").ok);
  Process program(snippet("minimal_put", {server.dataPort(), server.controlPort()}));
  EXPECT_EQ(program.finish(), 0);
  EXPECT_EQ(server.ask("text 0 1001").text, std::string(1000, 'q') + ".");
}

TEST(Snippet, deviceMemoryWorksOnAnAccelerator) {
  Process program(snippet("device_memory"),
                  {{"HMC_MEMORY_PLUGIN", HMC_FAKE_PLUGIN}, {"HMC_FAKE_KIND", "cuda"}});
  EXPECT_EQ(program.finish(), 0);
}

TEST(Snippet, firstGenerationWorksSplitOverTwoProcesses) {
  uint16_t port = freePort();
  Process server(snippet("first_generation_server", {port}));
  Reply ready = server.answer();
  ASSERT_TRUE(ready.ok) << ready;
  Process client(snippet("first_generation_client", {port}));
  EXPECT_EQ(client.finish(), 0);
  EXPECT_EQ(server.ask("").text, "w");
  EXPECT_EQ(server.finish(), 0);
}

TEST(Snippet, firstGenerationInTheOrderOfTheManualEndsInErrorsNotInACrash) {
  // The first connect waits for all of it, the second one has to be done within it on a busy
  // machine.
  Process program(snippet("first_generation_alone", {freePort()}),
                  {{"HMC_CONNECT_TIMEOUT_MS", "5000"}});
  EXPECT_EQ(program.finish(), 0);
}

TEST(Snippet, controlChannelTalksToItself) {
  Process program(snippet("control_channel", {freePort()}));
  EXPECT_EQ(program.answer().text, "1234 5678");
  EXPECT_EQ(program.finish(), 0);
}

TEST(Snippet, handshakeWorksWhicheverSideStartsFirst) {
  for (bool readerFirst : {true, false}) {
    std::vector<std::string> ports{std::to_string(freePort()), std::to_string(freePort())};
    const std::string program = std::string(HMC_SNIPPETS) + "handshake";
    Process first({program, readerFirst ? "read" : "write", ports[0], ports[1]});
    Process second({program, readerFirst ? "write" : "read", ports[0], ports[1]});
    EXPECT_EQ(first.finish(), 0);
    EXPECT_EQ(second.finish(), 0);
  }
}

}  // namespace
}  // namespace hmc::test
