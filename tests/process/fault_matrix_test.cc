#include <gtest/gtest.h>

#include <algorithm>

#include "calling_process.h"
#include "usable.h"

// Every fault x everything that can wait, over every way: two processes do all calls of a class to
// each other (see caller.h) when one is killed or stopped, or the network between them is cut.
// Each is target and origin. HMC_TEST_SLACK_MS says how late a call may be.
namespace hmc::test {
namespace {

using std::chrono::milliseconds;

enum class Fault { kill, stop, cut };

// Whose calls, and whether the fault hits the first of the two, which has their store.
struct Subject {
  std::string what;
  bool hitsFirst = false;
};

struct Cell {
  Fault fault;
  std::string way;
  std::vector<Subject> subjects;
};

std::string nameOf(const Cell& cell) {
  constexpr const char* kFaults[] = {"kill", "stop", "cut"};
  return std::string(kFaults[static_cast<int>(cell.fault)]) + "_" + cell.way;
}

void PrintTo(const Cell& cell, std::ostream* out) {
  *out << nameOf(cell);
}

// The other one is hit.
struct CallerPair {
  CallerPair(const Subject& subject, const std::string& way, const Cable* cable)
      : one(subject.what, way, cable ? cable->left() : ""),
        other(subject.what, way, cable ? cable->right() : "") {
    const std::string transport = way == "tls" ? "tcp" : way;
    one.make(transport, cable ? Cable::leftAddress() : "127.0.0.1", !subject.hitsFirst);
    other.make(transport, cable ? Cable::rightAddress() : "127.0.0.1", subject.hitsFirst);
  }

  CallingProcess one, other;
};

class FaultMatrix : public testing::TestWithParam<Cell> {
 protected:
  void SetUp() override {
    const std::string& way = GetParam().way;
    if (const auto why = whyNotUsable(way == "tls" ? "tcp" : way); !why.empty())
      GTEST_SKIP() << why;
    if (GetParam().fault == Fault::cut) {
      cable_ = std::make_unique<Cable>();
      if (!cable_->whyNot().empty()) GTEST_SKIP() << cable_->whyNot();
    }
    // A busy machine may lose a connection of a short lease by itself, and a region with it, which
    // then has to be opened again: all of it begins again.
    for (int more = 3; more > 0; --more) {
      begin();
      if (HasFailure() || allWork()) return;
      pairs_.clear();
    }
    begin();
    for (const auto& pair : pairs_) {
      pair->one.allEnd();
      pair->other.allEnd();
    }
  }

  void begin() {
    for (const Subject& subject : GetParam().subjects)
      pairs_.push_back(std::make_unique<CallerPair>(subject, GetParam().way, cable_.get()));
    for (const auto& pair : pairs_) {
      const std::string one = pair->one.introduction(), other = pair->other.introduction();
      pair->one.meet(other);
      pair->other.meet(one);
      pair->one.begin();
      pair->other.begin();
      if (HasFailure()) return;
    }
  }

  bool allWork() {
    constexpr std::chrono::seconds kUsually{15};
    return std::all_of(pairs_.begin(), pairs_.end(), [&](const auto& pair) {
      return pair->one.allEndWithin(kUsually) && pair->other.allEndWithin(kUsually);
    });
  }

  // From now on each call of those processes ends twice.
  void goesOn(CallingProcess CallerPair::*which) {
    for (const auto& pair : pairs_) ((*pair).*which).mark();
    for (const auto& pair : pairs_) ((*pair).*which).allEnd();
  }
  void expectInTime(CallingProcess CallerPair::*which, milliseconds stopped = {}) {
    for (const auto& pair : pairs_) ((*pair).*which).end();
    for (const auto& pair : pairs_) ((*pair).*which).expectInTime(stopped);
  }

  std::unique_ptr<Cable> cable_;  // outlives the processes in it
  std::vector<std::unique_ptr<CallerPair>> pairs_;
};

TEST_P(FaultMatrix, everyCallEnds) {
  if (HasFailure()) return;
  switch (GetParam().fault) {
    case Fault::kill:
      for (const auto& pair : pairs_) pair->other.kill();
      goesOn(&CallerPair::one);
      break;
    case Fault::cut:
      ASSERT_TRUE(cable_->cut());
      goesOn(&CallerPair::one);
      goesOn(&CallerPair::other);
      expectInTime(&CallerPair::other);
      break;
    case Fault::stop: {
      const auto begin = std::chrono::steady_clock::now();
      for (const auto& pair : pairs_) pair->other.stop();
      goesOn(&CallerPair::one);
      for (const auto& pair : pairs_) pair->other.resume();
      const auto stopped =
          std::chrono::ceil<milliseconds>(std::chrono::steady_clock::now() - begin);
      goesOn(&CallerPair::other);
      expectInTime(&CallerPair::other, stopped);
      break;
    }
  }
  expectInTime(&CallerPair::one);
}

// Processes of different network namespaces share no memory, and UCX 1.13 finds no way between
// them.
bool canBeCut(const std::string& way) {
  return way == "tcp" || way == "tls";
}

std::vector<Cell> cells(const std::vector<Subject>& subjects,
                        const std::vector<std::string>& ways) {
  std::vector<Cell> all;
  for (const Fault fault : {Fault::kill, Fault::stop, Fault::cut})
    for (const auto& way : ways)
      if (fault != Fault::cut || canBeCut(way)) all.push_back({fault, way, subjects});
  return all;
}

std::string cellName(const testing::TestParamInfo<Cell>& info) {
  return nameOf(info.param);
}

INSTANTIATE_TEST_SUITE_P(Node, FaultMatrix,
                         testing::ValuesIn(cells({{"node"}}, {"ipc", "tcp", "tls", "ucx"})),
                         cellName);

// All at once, because each waits most of the time.
INSTANTIATE_TEST_SUITE_P(Others, FaultMatrix,
                         testing::ValuesIn(cells({{"pool"},
                                                  {"pool", true},
                                                  {"collective"},
                                                  {"collective", true},
                                                  {"store"},
                                                  {"communicator"},
                                                  {"ctrl"}},
                                                 {"ipc", "tcp"})),
                         cellName);

// Apart, because their timeouts are whole seconds.
INSTANTIATE_TEST_SUITE_P(MemFabric, FaultMatrix,
                         testing::ValuesIn(cells({{"memfabric"}, {"memfabric", true}}, {"ipc"})),
                         cellName);

}  // namespace
}  // namespace hmc::test
