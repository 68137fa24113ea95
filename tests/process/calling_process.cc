#include "calling_process.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <sstream>

namespace hmc::test {

namespace {

using std::chrono::milliseconds;

milliseconds slack() {
  const char* wanted = std::getenv("HMC_TEST_SLACK_MS");
  return wanted ? milliseconds(std::atoi(wanted)) : kPatience;
}

std::vector<std::string> commandIn(const std::string& space) {
  if (space.empty()) return {HMC_TEST_CALLER};
  return {"ip", "netns", "exec", space, HMC_TEST_CALLER};
}

Process::Environment environmentFor(const std::string& way) {
  const std::string timeout = std::to_string(CallingProcess::kTimeout.count());
  Process::Environment all{{"HMC_LOG", "error"},
                           {"HMC_SECRET", "of the matrix"},
                           {"HMC_LEASE_MS", std::to_string(CallingProcess::kLease.count())},
                           {"HMC_TIMEOUT_MS", timeout},
                           {"HMC_RECV_TIMEOUT_MS", timeout},
                           {"HMC_CONNECT_TIMEOUT_MS", timeout}};
  all["HMC_TRANSPORTS"] = way == "tls" ? "tcp" : way;
  if (way == "tls") all["HMC_TLS"] = "required";
  return all;
}

}  // namespace

CallingProcess::CallingProcess(const std::string& what, const std::string& way,
                               const std::string& space)
    : Process(commandIn(space), environmentFor(way)), what_(what) {}

void CallingProcess::expectOk(const Reply& reply) const {
  EXPECT_TRUE(reply.ok) << what_ << ": " << reply;
}

void CallingProcess::make(const std::string& transport, const std::string& host, bool first) {
  say("caller " + what_ + " " + transport + " " + std::to_string(kLease.count()) + " " + host +
      (first ? " 1" : " 0"));
}

std::string CallingProcess::introduction() {
  const Reply made = answer();
  expectOk(made);
  return made.text;
}

// A busy machine may lose a connection of a short lease by itself.
void CallingProcess::meet(const std::string& introduction) {
  Reply met;
  (void)eventually([&] {
    met = ask("meet " + introduction);
    return met.ok || met.code == "GONE";
  });
  expectOk(met);
}

void CallingProcess::begin() {
  expectOk(ask("begin " + std::to_string(kTimeout.count())));
}

void CallingProcess::mark() {
  expectOk(ask("mark"));
}

bool CallingProcess::allEndWithin(std::chrono::seconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  for (;;) {
    const Reply waiting = ask("waiting 2");
    if (waiting.ok && waiting.text.empty()) return true;
    if (!waiting.ok || std::chrono::steady_clock::now() > end) return false;
    pauseBetweenLooks();
  }
}

void CallingProcess::allEnd() {
  if (testing::Test::HasFailure()) return;
  Reply waiting;
  EXPECT_TRUE(eventually([&] {
    waiting = ask("waiting 2");
    return waiting.ok ? waiting.text.empty() : waiting.code == "GONE";
  })) << what_
      << " still in" << waiting.text;
}

void CallingProcess::expectInTime(milliseconds stopped) {
  const Reply reply = answer();
  expectOk(reply);
  std::istringstream lines(reply.text);
  milliseconds latest = milliseconds::min();
  std::string which;
  for (std::string line; std::getline(lines, line, ';');) {
    std::istringstream words(line);
    std::string call, outcome;
    long took = 0, most = 0;
    words >> call >> took >> most;
    std::getline(words, outcome);
    const milliseconds late = milliseconds(took - most) - stopped;
    EXPECT_LE(late.count(), slack().count())
        << what_ << ": " << call << " took " << took << " ms and ended with" << outcome;
    if (late <= latest) continue;
    latest = late;
    which = call + ", " + std::to_string(took) + " ms:" + outcome;
  }
  std::cout << "  " << what_ << ", latest: " << latest.count()
            << " ms after it had to end: " << which << "\n";
}

}  // namespace hmc::test
