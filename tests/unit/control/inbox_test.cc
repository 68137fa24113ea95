#include "control/inbox.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <thread>

namespace hmc {
namespace {

constexpr std::chrono::seconds kPatience{30};

struct WithRing {
  WithRing()
      : created(*RingMemory::create()), writer(created.memory, kDiallerToAcceptor), inbox("peer") {
    inbox.attachRing(created.memory, kDiallerToAcceptor);
  }
  RingMemory::Created created;
  RingWriter writer;
  Inbox inbox;
};

TEST(Inbox, putsFragmentsTogether) {
  WithRing ring;
  ring.writer.write({0, 4, true}, "one ");
  ring.writer.write({0, 4, true}, "two ");
  EXPECT_FALSE(ring.inbox.unread());
  ring.writer.write({0, 4, false}, "three");
  auto message = ring.inbox.receive(MessageKind::tag, kPatience);
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->payload, "one two three");
  EXPECT_EQ(message->flags, 4);
}

TEST(Inbox, forgetsAnAbandonedMessage) {
  WithRing ring;
  ring.writer.write({0, 0, true}, "never ");
  ring.writer.write({.abandoned = true}, "");
  ring.writer.write({0, 0}, "whole");
  EXPECT_EQ(ring.inbox.receive(MessageKind::tag, kPatience)->payload, "whole");
}

TEST(Inbox, aWaiterOnTheRingIsWokenByTheRingBySocketAndByTheEnd) {
  WithRing ring;
  std::jthread first(
      [&] { EXPECT_EQ(ring.inbox.receive(MessageKind::tag, kPatience)->payload, "ring"); });
  std::jthread second(
      [&] { EXPECT_EQ(ring.inbox.receive(MessageKind::integer, kPatience)->payload, "socket"); });
  std::jthread third([&] {
    EXPECT_EQ(ring.inbox.receive(MessageKind::structure, kPatience).status().message(), "over");
  });
  ring.writer.write({0}, "ring");
  first.join();
  ASSERT_TRUE(ring.inbox.push({MessageKind::integer, 0, "socket"}).ok());
  second.join();
  ring.inbox.end(Status(Code::disconnected, "over"));
}

TEST(Inbox, aWaiterFollowsThePeerFromSocketToRing) {
  auto created = *RingMemory::create();
  RingWriter writer(created.memory, kDiallerToAcceptor);
  Inbox inbox("peer");
  std::jthread waiter(
      [&] { EXPECT_EQ(inbox.receive(MessageKind::tag, kPatience)->payload, "by ring"); });
  inbox.attachRing(created.memory, kDiallerToAcceptor);
  writer.write({0}, "by ring");
}

TEST(Inbox, whatLiesInTheRingAtTheEndStaysReadable) {
  WithRing ring;
  ring.writer.write({0}, "last");
  ring.inbox.end(Status(Code::disconnected, "over"));
  EXPECT_EQ(ring.inbox.end(Status(Code::failed, "again")).message(), "over");
  EXPECT_EQ(ring.inbox.receive(MessageKind::tag, kPatience)->payload, "last");
  EXPECT_EQ(ring.inbox.receive(MessageKind::tag, kPatience).status().message(), "over");
}

TEST(Inbox, aCorruptRingIsAnErrorForWhoeverLooks) {
  WithRing ring;
  ring.writer.write({200}, "no such kind");
  EXPECT_EQ(ring.inbox.receive(MessageKind::tag, kPatience).status().code(), Code::failed);
  EXPECT_EQ(ring.inbox.drain().code(), Code::failed);
}

TEST(Inbox, aNoteHasNoPlaceInTheRing) {
  WithRing ring;
  ring.writer.write({static_cast<uint8_t>(MessageKind::note)}, "note");
  EXPECT_FALSE(ring.inbox.drain().ok());
}

TEST(Inbox, aMessageInRecordsCannotGrowBeyondTheLargest) {
  WithRing ring;
  std::string piece(kLargestRecord, 'x');
  Status status;
  size_t written = 0;
  while (status.ok() && written < 2 * kLargestMessage) {
    if (ring.writer.write({0, 0, true}, piece) == RingOutcome::done) {
      written += piece.size();
    } else {
      status = ring.inbox.drain();
    }
  }
  EXPECT_EQ(status.code(), Code::failed);
  EXPECT_LE(written, kLargestMessage + 2 * kRingSize);
}

}  // namespace
}  // namespace hmc
