#include "control/inbox.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace hmc::control {
namespace {

constexpr std::chrono::seconds kInboxPatience{30};

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
  auto message = ring.inbox.receive(MessageKind::tag, kInboxPatience);
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->payload, "one two three");
  EXPECT_EQ(message->flags, 4);
}

TEST(Inbox, forgetsAnAbandonedMessage) {
  WithRing ring;
  ring.writer.write({0, 0, true}, "never ");
  ring.writer.write({.abandoned = true}, "");
  ring.writer.write({0, 0}, "whole");
  EXPECT_EQ(ring.inbox.receive(MessageKind::tag, kInboxPatience)->payload, "whole");
}

TEST(Inbox, aWaiterOnTheRingIsWokenByTheRingBySocketAndByTheEnd) {
  WithRing ring;
  std::jthread first(
      [&] { EXPECT_EQ(ring.inbox.receive(MessageKind::tag, kInboxPatience)->payload, "ring"); });
  std::jthread second([&] {
    EXPECT_EQ(ring.inbox.receive(MessageKind::integer, kInboxPatience)->payload, "socket");
  });
  std::jthread third([&] {
    EXPECT_EQ(ring.inbox.receive(MessageKind::structure, kInboxPatience).status().message(),
              "over");
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
      [&] { EXPECT_EQ(inbox.receive(MessageKind::tag, kInboxPatience)->payload, "by ring"); });
  inbox.attachRing(created.memory, kDiallerToAcceptor);
  writer.write({0}, "by ring");
}

TEST(Inbox, whatLiesInTheRingAtTheEndStaysReadable) {
  WithRing ring;
  ring.writer.write({0}, "last");
  ring.inbox.end(Status(Code::disconnected, "over"));
  EXPECT_EQ(ring.inbox.end(Status(Code::failed, "again")).message(), "over");
  EXPECT_EQ(ring.inbox.receive(MessageKind::tag, kInboxPatience)->payload, "last");
  EXPECT_EQ(ring.inbox.receive(MessageKind::tag, kInboxPatience).status().message(), "over");
}

TEST(Inbox, aCorruptRingIsAnErrorForWhoeverLooks) {
  WithRing ring;
  ring.writer.write({200}, "no such kind");
  EXPECT_EQ(ring.inbox.receive(MessageKind::tag, kInboxPatience).status().code(), Code::failed);
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

TEST(Inbox, severalKindsComeInTheOrderOfTheirArrival) {
  WithRing ring;
  constexpr KindSet kBoth{MessageKind::tag, MessageKind::structure};
  ASSERT_TRUE(ring.inbox.push({MessageKind::structure, 0, "1"}).ok());
  ring.writer.write({static_cast<uint8_t>(MessageKind::tag)}, "2");
  ring.writer.write({static_cast<uint8_t>(MessageKind::integer)}, "aside");
  ring.writer.write({static_cast<uint8_t>(MessageKind::structure)}, "3");
  ring.writer.write({static_cast<uint8_t>(MessageKind::tag)}, "4");
  EXPECT_TRUE(ring.inbox.unread(MessageKind::integer)) << "moves everything into the queues";
  ring.writer.write({static_cast<uint8_t>(MessageKind::structure)}, "5");
  for (const char* expected : {"1", "2", "3", "4", "5"}) {
    EXPECT_EQ(ring.inbox.receive(kBoth, kInboxPatience)->payload, expected);
  }
  EXPECT_EQ(ring.inbox.receive(MessageKind::integer, kInboxPatience)->payload, "aside");
  auto none = ring.inbox.receive(kBoth, Deadline::now());
  EXPECT_NE(none.status().message().find("no tag or structure arrived"), std::string::npos);
}

TEST(Inbox, aShortMessageIsTakenStraightFromTheRingInItsTurn) {
  WithRing ring;
  char read[4] = "";
  auto take = [&] { return ring.inbox.tryReceive(MessageKind::tag, read, 3); };
  EXPECT_FALSE(take()) << "there is none";
  ring.writer.write({static_cast<uint8_t>(MessageKind::tag)}, "one");
  ASSERT_TRUE(take());
  EXPECT_STREQ(read, "one");
  ring.writer.write({static_cast<uint8_t>(MessageKind::tag)}, "two");
  EXPECT_TRUE(ring.inbox.unread()) << "moves it into its queue";
  ring.writer.write({static_cast<uint8_t>(MessageKind::tag)}, "six");
  EXPECT_FALSE(take()) << "an older one waits in the queue";
  EXPECT_EQ(ring.inbox.receive(MessageKind::tag, kInboxPatience)->payload, "two");
  ring.inbox.end(Status(Code::disconnected, "over"));
  EXPECT_FALSE(take()) << "the end moves what is left into the queues";
  EXPECT_EQ(ring.inbox.receive(MessageKind::tag, kInboxPatience)->payload, "six");
}

TEST(Inbox, whoLooksIntoTheRingGivesWayToOthers) {
  WithRing ring;
  constexpr int kEach = 2000;
  std::atomic<int> tags{0}, integers{0};
  std::jthread looking([&] {
    char read[3];
    while (tags.load() < kEach) {
      if (ring.inbox.tryReceive(MessageKind::tag, read, sizeof(read))) ++tags;
      if (ring.inbox.unread(MessageKind::tag))
        tags += ring.inbox.receive(MessageKind::tag, kInboxPatience).ok();
    }
  });
  std::jthread waiting([&] {
    while (integers.load() < kEach && ring.inbox.receive(MessageKind::integer, kInboxPatience).ok())
      ++integers;
  });
  for (int i = 0; i < 2 * kEach; ++i) {
    const auto kind = i % 2 == 0 ? MessageKind::tag : MessageKind::integer;
    while (ring.writer.write({static_cast<uint8_t>(kind)}, "abc") != RingOutcome::done)
      std::this_thread::yield();
  }
  looking.join();
  waiting.join();
  EXPECT_EQ(tags, kEach);
  EXPECT_EQ(integers, kEach);
}

TEST(Inbox, aWaiterForSeveralKindsWakesForEach) {
  for (auto kind : {MessageKind::tag, MessageKind::integer, MessageKind::structure}) {
    WithRing ring;
    KindSet any{MessageKind::tag, MessageKind::integer, MessageKind::structure};
    std::jthread waiter([&] { EXPECT_EQ(ring.inbox.receive(any, kInboxPatience)->kind, kind); });
    ring.writer.write({static_cast<uint8_t>(kind)}, "x");
  }
}

TEST(Inbox, whoTakesOneKindHandsTheOthersToTheirWaiters) {
  WithRing ring;
  std::jthread other([&] {
    EXPECT_EQ(ring.inbox.receive(MessageKind::integer, kInboxPatience)->payload, "theirs");
  });
  ring.writer.write({static_cast<uint8_t>(MessageKind::integer)}, "theirs");
  ring.writer.write({static_cast<uint8_t>(MessageKind::tag)}, "mine");
  EXPECT_EQ(ring.inbox.receive(MessageKind::tag, kInboxPatience)->payload, "mine");
}

}  // namespace
}  // namespace hmc::control
