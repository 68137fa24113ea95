#include <gtest/gtest.h>

#include <cstdlib>
#include <unordered_set>

#include "model/fence_world.h"

// Every order in which a put over tcp, its end, heartbeats, packets, forged ends of the connection
// and restarts can follow each other, within bounds (docs/decisions/019-the-fence-model.md).
namespace hmc::model {
namespace {

struct Found {
  size_t states = 0;
  size_t steps = 0;
  std::string wrong;  // with the steps that lead there; empty: nothing
  size_t lateBytes = 0;
};

Found explore(const Rules& rules) {
  Found found;
  Choices choices;
  std::unordered_set<size_t> known;
  do {
    FenceWorld world(rules, choices);
    std::string path;
    std::string wrong;
    while (wrong.empty()) {
      if (choices.isNew()) {
        if (!known.insert(std::hash<std::string>()(world.fingerprint())).second) break;
        ++found.states;
      }
      const int chosen = choices.chooseOf([&] { return world.possible(); });
      if (chosen < 0) break;
      const auto action = static_cast<FenceWorld::Action>(chosen);
      path += path.empty() ? "" : ", ";
      path += FenceWorld::name(action);
      wrong = world.take(action);
      ++found.steps;
    }
    if (wrong.empty()) wrong = world.settle();
    found.lateBytes = std::max(found.lateBytes, world.lateBytes());
    if (!wrong.empty() && !rules.stopsBetweenLookAndReceive) {
      found.wrong = wrong + ": " + path;
      return found;
    }
  } while (choices.next());
  return found;
}

void expectSafe(const Rules& rules) {
  const Found found = explore(rules);
  EXPECT_EQ(found.wrong, "");
  EXPECT_GT(found.states, 1000u);
  std::printf("%zu states, %zu steps\n", found.states, found.steps);
}

// HMC_MODEL_TICKS, HMC_MODEL_BEATS and HMC_MODEL_STRANGERS add to the bounds.
Rules further(Rules rules) {
  const auto more = [](const char* name) {
    const char* set = std::getenv(name);
    return set ? std::atoi(set) : 0;
  };
  rules.ticks += more("HMC_MODEL_TICKS");
  rules.beats += more("HMC_MODEL_BEATS");
  rules.strangers += more("HMC_MODEL_STRANGERS");
  return rules;
}

TEST(FenceModel, noByteIsLateAndNothingIsPendingForEver) {
  expectSafe(further({}));
}

TEST(FenceModel, holdsWhenAStrangerEndsTheConnection) {
  Rules rules;
  rules.ticks = 2;
  rules.beats = 0;
  rules.strangers = 1;
  expectSafe(further(rules));
}

TEST(FenceModel, holdsWhenTheTargetIsStoppedOrRestarted) {
  Rules rules;
  rules.ticks = 2;
  rules.beats = 0;
  rules.stops = 1;
  rules.restarts = true;
  expectSafe(further(rules));
}

TEST(FenceModel, holdsForUnequalLeases) {
  Rules rules;
  rules.beats = 0;
  rules.originLease = std::chrono::milliseconds(1);
  rules.targetLease = std::chrono::milliseconds(3);
  expectSafe(further(rules));
  std::swap(rules.originLease, rules.targetLease);
  expectSafe(further(rules));
}

// What is broken on purpose is found.
void expectCaught(const Rules& rules) {
  const Found found = explore(rules);
  EXPECT_NE(found.wrong.find("applied after its end"), std::string::npos) << found.wrong;
  std::printf("after %zu states: %s\n", found.states, found.wrong.c_str());
}

TEST(FenceModel, findsATargetThatIgnoresTheLease) {
  Rules rules;
  rules.targetIgnoresTheLease = true;
  expectCaught(rules);
}

TEST(FenceModel, findsAnOriginThatBelievesABareEnd) {
  Rules rules;
  rules.strangers = 1;
  rules.anEndIsBelieved = true;
  expectCaught(rules);
}

TEST(FenceModel, findsLeasesThatAreEachSidesOwn) {
  Rules rules;
  rules.originLease = std::chrono::milliseconds(1);
  rules.targetLease = std::chrono::milliseconds(4);
  rules.eachSideHasItsOwnLease = true;
  expectCaught(rules);
}

TEST(FenceModel, findsATargetThatCountsFromWhatItHears) {
  Rules rules;
  rules.whatIsHeardRenews = true;
  expectCaught(rules);
}

TEST(FenceModel, findsAnOriginThatDoesNotSayThatALinkHasEnded) {
  Rules rules;
  rules.theEndOfALinkIsNotSaid = true;
  expectCaught(rules);
}

// The one hole that decision 002 describes: a process that is stopped between the two.
TEST(FenceModel, aStopBetweenLookAndReceiveLetsOneReceiveThrough) {
  Rules rules;
  rules.ticks = 1;
  rules.beats = 0;
  rules.stops = 1;
  rules.stopsBetweenLookAndReceive = true;
  const Found found = explore(rules);
  EXPECT_GT(found.lateBytes, 0u);
  EXPECT_LE(found.lateBytes, SimulatedHost::kPacket);
}

}  // namespace
}  // namespace hmc::model
