#include <gtest/gtest.h>

#include <cstdlib>

#include "peer.h"

namespace hmc::test {
namespace {

std::string rounds() {
  const char* fewer = std::getenv("HMC_TEST_ROUNDS");
  return fewer ? fewer : "100000";
}

class Handshake : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(reader.serve(4096, type).ok);
    ASSERT_TRUE(writer.allocate(4096).ok);
    Reply connected = writer.connectTo(reader, type);
    ASSERT_TRUE(connected.ok) << connected;
  }
  const std::string type = GetParam();
  Peer reader, writer;
};

TEST_P(Handshake, neverShowsBytesOlderThanTheTag) {
  reader.say("readrounds 1 " + rounds());
  writer.say("writerounds 0 " + reader.address() + " " + rounds() + " " + type);
  Reply wrote = writer.answer(std::chrono::minutes(25));
  ASSERT_TRUE(wrote.ok) << wrote;
  Reply read = reader.answer();
  ASSERT_TRUE(read.ok) << read;
  EXPECT_EQ(read.text, "0") << "stale reads in " << rounds() << " rounds";
}

INSTANTIATE_TEST_SUITE_P(Transport, Handshake, testing::Values("IPC", "TCP"),
                         [](const auto& one) { return one.param; });

// The documented names stand for one of the transports above here; a few rounds show that they do.
class HandshakeByName : public Handshake {};

TEST_P(HandshakeByName, worksUnderTheDocumentedNames) {
  reader.say("readrounds 1 1000");
  Reply wrote = writer.ask("writerounds 0 " + reader.address() + " 1000 " + type);
  ASSERT_TRUE(wrote.ok) << wrote;
  EXPECT_EQ(reader.answer().text, "0");
}

INSTANTIATE_TEST_SUITE_P(Name, HandshakeByName, testing::Values("RDMA", "UCX", "AUTO"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace hmc::test
