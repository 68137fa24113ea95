#include "control/calls.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"

namespace hmc::control {
namespace {

constexpr std::chrono::seconds kCallPatience{30};

Status over() {
  return error(Code::disconnected, "over");
}

TEST(Calls, anAnswerGoesToWhoAskedForIt) {
  Calls calls("a peer");
  std::vector<std::string> heard;
  auto hear = [&](const Result<std::string>& answer) { heard.push_back(*answer); };
  const uint64_t first = calls.begin(hear);
  const uint64_t second = calls.begin(hear);
  calls.answer(second, std::string("b"));
  calls.answer(first, std::string("a"));
  calls.answer(first, std::string("again"));
  EXPECT_EQ(heard, (std::vector<std::string>{"b", "a"}));
}

TEST(Calls, theEndAnswersWhatIsOpenOnce) {
  Calls calls("a peer");
  std::vector<Code> ends;
  const uint64_t number = calls.begin(
      [&](const Result<std::string>& answer) { ends.push_back(answer.status().code()); });
  calls.end(over());
  calls.end(error(Code::failed, "another reason"));
  calls.answer(number, std::string("late"));
  EXPECT_EQ(ends, std::vector<Code>{Code::disconnected});
}

TEST(Calls, aQuestionAfterTheEndIsAnsweredAtOnce) {
  Calls calls("a peer");
  calls.end(over());
  std::vector<Code> ends;
  calls.begin([&](const Result<std::string>& answer) { ends.push_back(answer.status().code()); });
  EXPECT_EQ(ends, std::vector<Code>{Code::disconnected});
  EXPECT_EQ(calls.wait(calls.begin(), kCallPatience).status().code(), Code::disconnected);
}

}  // namespace
}  // namespace hmc::control
