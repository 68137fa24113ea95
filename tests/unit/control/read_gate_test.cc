#include "control/read_gate.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hmc {
namespace {

struct Connection {
  Connection() {
    int both[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, both) != 0) return;
    here = Fd(both[0]);
    there = Fd(both[1]);
    gate = *ReadGate::create(here.get());
  }
  bool says(short events = POLLIN) const {
    pollfd entry{gate->fd(), events, 0};
    return poll(&entry, 1, 0) == 1;
  }
  Fd here, there;
  std::unique_ptr<ReadGate> gate;
};

TEST(ReadGate, saysWhenTheSocketIsReadableOnlyWhileItIsOpen) {
  Connection connection;
  EXPECT_TRUE(connection.gate->isOpen());
  EXPECT_FALSE(connection.says());
  ASSERT_EQ(write(connection.there.get(), "x", 1), 1);
  EXPECT_TRUE(connection.says());
  connection.gate->close();
  EXPECT_FALSE(connection.gate->isOpen());
  EXPECT_FALSE(connection.says());
}

TEST(ReadGate, whatCameWhileItWasClosedIsSaidWhenItOpens) {
  Connection connection;
  connection.gate->close();
  ASSERT_EQ(write(connection.there.get(), "x", 1), 1);
  EXPECT_FALSE(connection.says());
  connection.gate->open();
  EXPECT_TRUE(connection.says());
}

TEST(ReadGate, aConnectionThatBrokeWhileItWasClosedIsSaidWhenItOpens) {
  Connection connection;
  connection.gate->close();
  connection.there.reset();
  EXPECT_FALSE(connection.says());
  connection.gate->open();
  EXPECT_TRUE(connection.says());
}

TEST(ReadGate, needsADescriptorThatCanBeWatched) {
  EXPECT_FALSE(ReadGate::create(-1).ok());
}

}  // namespace
}  // namespace hmc
