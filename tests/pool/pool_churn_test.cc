#include <array>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <optional>
#include <random>
#include <set>

#include "checksum.h"
#include "fakes/pattern.h"
#include "pool_members.h"

// Eight processes that join, leave, copy, are killed and stopped in random order, and what must be
// true after each step. HMC_CHURN_SEED repeats a run, HMC_CHURN_SECONDS makes it a soak.
namespace hmc::test {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kSteps = 40;
const std::string kLease = " heartbeat=500 lease=5000";
#else
constexpr int kSteps = 120;
const std::string kLease = " heartbeat=200 lease=2000";
#endif

constexpr size_t kSeats = 8;
// The test knows every byte of the first part of a slot. The rest is for copies that are
// interrupted.
constexpr size_t kKnown = kMiB;
constexpr size_t kSlot = 24 * kMiB;
constexpr size_t kRest = kSlot - kKnown;
const std::string kChurnOptions = "capacity=8 host=" + std::to_string(kSlot) + kLease;

std::optional<uint64_t> fromEnvironment(const char* name) {
  const char* text = std::getenv(name);
  if (!text) return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

// A process, and what it shall be: a member with a rank and bytes, or none.
struct Seat {
  std::unique_ptr<PoolMember> process;
  std::optional<uint32_t> rank;
  std::string known;          // the first kKnown bytes of its slot
  bool restUntouched = true;  // nobody has written behind those
  std::set<uint32_t> had;     // ranks that it has seen as members
};

class PoolChurn : public PoolTest {
 protected:
  void TearDown() override {
    for (Seat& seat : seats_) seat.process.reset();
    keeper_.reset();
  }

  size_t below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random_); }

  std::vector<Seat*> those(const std::function<bool(const Seat&)>& wanted) {
    std::vector<Seat*> found;
    for (Seat& seat : seats_) {
      if (wanted(seat)) found.push_back(&seat);
    }
    return found;
  }
  std::vector<Seat*> members(const Seat* except = nullptr) {
    return those([&](const Seat& seat) { return seat.rank && &seat != except; });
  }
  Seat* anyOf(const std::vector<Seat*>& seats) {
    return seats.empty() ? nullptr : seats[below(seats.size())];
  }
  std::set<uint32_t> freeRanks() {
    std::set<uint32_t> all;
    for (uint32_t rank = 0; rank < kSeats; ++rank) all.insert(rank);
    for (const Seat* seat : members()) all.erase(*seat->rank);
    return all;
  }
  static std::string name(const Seat& seat) { return std::to_string(*seat.rank); }
  static std::string sumOf(const std::string& bytes) { return std::to_string(checksum(bytes)); }

  void log(const std::string& what) { history_ += "\n  " + std::to_string(step_) + ": " + what; }

  // Steps.

  void join(Seat* seat) {
    if (!seat) return;
    const auto free = freeRanks();
    const bool chosen = below(4) == 0;
    const uint32_t rank = chosen ? *std::next(free.begin(), below(free.size())) : *free.begin();
    if (!seat->process) seat->process = std::make_unique<PoolMember>();
    log("join as " + std::to_string(rank) + (chosen ? ", by choice" : ""));
    const Reply joined = seat->process->join(
        store_, kChurnOptions + (chosen ? " rank=" + std::to_string(rank) : ""));
    expectOk(joined, std::to_string(rank));
    seat->rank = rank;
    seat->known.assign(kKnown, '\0');
    seat->restUntouched = true;
    seat->had.clear();
    for (Seat* one : members()) {
      one->had.insert(rank);
      seat->had.insert(*one->rank);
    }
  }
  void leave(Seat* seat) {
    if (!seat) return;
    log("leave of " + name(*seat));
    expectOk(seat->process->ask("leave"));
    left(*seat);
    if (below(2) == 0) seat->process.reset();
  }
  void kill(Seat* seat) {
    if (!seat) return;
    log("kill of " + name(*seat));
    seat->process->kill();
    seat->process.reset();
    left(*seat);
  }
  void left(Seat& seat) {
    gone_ = seat.rank;
    seat.rank.reset();
  }

  // A range that is known.
  struct Range {
    size_t offset;
    size_t size;
    std::string text() const { return std::to_string(offset) + " " + std::to_string(size); }
  };
  Range anyRange() {
    const size_t size = size_t{1} << below(20);
    return {below(kKnown - size), size};
  }
  void put() {
    Seat* by = anyOf(members());
    Seat* to = anyOf(members());
    if (!by) return;
    const Range range = anyRange();
    const size_t seed = below(250);
    log("put by " + name(*by) + " to " + name(*to) + " at " + range.text());
    expectOk(by->process->ask("put " + name(*to) + " host " + range.text() + " " +
                              std::to_string(seed)));
    to->known.replace(range.offset, range.size, pattern(range.size, seed));
  }
  void move() {
    Seat* by = anyOf(members());
    Seat* from = anyOf(members());
    Seat* to = anyOf(members());
    if (!by || from == to) return;
    const Range range = anyRange();
    const size_t offset = below(kKnown - range.size);
    log("move by " + name(*by) + " from " + name(*from) + " to " + name(*to));
    expectOk(by->process->ask("move " + name(*from) + " host " + range.text() + " 0 " + name(*to) +
                              " host " + std::to_string(offset)));
    to->known.replace(offset, range.size, from->known, range.offset, range.size);
  }
  // Something for everybody, and for a rank that is not there: that one alone fails.
  void batch() {
    Seat* by = anyOf(members());
    if (!by) return;
    const Range range = anyRange();
    const size_t seed = below(250);
    const auto free = freeRanks();
    log("batch by " + name(*by));
    std::string line = "batch " + std::to_string(range.size) + " " + std::to_string(seed);
    std::string outcomes;
    for (Seat* to : members()) {
      line += " " + name(*to) + " " + std::to_string(range.offset) + " pattern";
      outcomes += (outcomes.empty() ? "ok" : " ok");
      to->known.replace(range.offset, range.size, pattern(range.size, seed));
    }
    if (!free.empty()) {
      line += " " + std::to_string(*free.begin()) + " " + std::to_string(range.offset) + " pattern";
      outcomes += " not_found";
    }
    expectOk(by->process->ask(line), outcomes);
  }

  // A large copy is on its way when the member at one of its ends is killed.
  void killInMidCopy() {
    Seat* by = anyOf(members());
    Seat* to = by ? anyOf(members(by)) : nullptr;
    if (!to) return;
    const bool source = below(2) == 0;
    log("large copy by " + name(*by) + " to " + name(*to) + ", then");
    beginLargeCopy(*by, *to);
    kill(source ? by : to);
    if (!source) (void)expectAnswer(*by);
  }
  void beginLargeCopy(Seat& by, Seat& to) {
    by.process->say("fill " + name(to) + " host " + std::to_string(kKnown) + " " +
                    std::to_string(kRest));
    to.restUntouched = false;
    // Now and then in the middle of it.
    for (const auto end =
             std::chrono::steady_clock::now() + std::chrono::microseconds(below(15000));
         std::chrono::steady_clock::now() < end;) {
    }
  }
  static Reply expectAnswer(Seat& seat) {
    Reply reply = seat.process->answer();
    EXPECT_NE(reply.code, "SILENT") << reply;
    EXPECT_NE(reply.code, "GONE") << reply;
    return reply;
  }

  // One is stopped for longer than its lease, often in the middle of a copy. Its rank and the one
  // that it copies to are given again before it goes on.
  void stop() {
    Seat* stopped = anyOf(members());
    Seat* to = stopped ? anyOf(members(stopped)) : nullptr;
    if (!to) return;
    const bool copies = below(3) != 0;
    const std::string rank = name(*stopped);
    log(std::string("stop of ") + rank + (copies ? ", which copies to " + name(*to) : ""));
    if (copies) beginLargeCopy(*stopped, *to);
    stopped->process->stop();
    std::unique_ptr<PoolMember> frozen = std::move(stopped->process);
    left(*stopped);
    awaitViews();  // once its lease is over
    if (copies) kill(to);
    check();
    join(anyOf(those([](const Seat& seat) { return !seat.rank; })));
    join(anyOf(those([](const Seat& seat) { return !seat.rank; })));
    log("it goes on");
    frozen->resume();
    if (copies) {
      const Reply late = frozen->answer();
      EXPECT_NE(late.code, "SILENT") << late;
    }
    // The others have given it up, and it may have noticed or not.
    const Reply leaves = frozen->ask("leave");
    EXPECT_NE(leaves.code, "SILENT") << leaves;
    EXPECT_NE(leaves.code, "GONE") << leaves;
    for (Seat* seat : untouched()) checkRest(*seat);
  }

  // What must be true.

  void awaitViews() {
    std::string ranks;
    for (uint32_t rank = 0; rank < kSeats; ++rank) {
      if (!freeRanks().contains(rank)) ranks += " " + std::to_string(rank);
    }
    const auto all = members();
    for (Seat* seat : all) seat->process->say("await-ranks" + ranks);
    for (Seat* seat : all) {
      const Reply seen = seat->process->answer(2 * kPatience);
      EXPECT_TRUE(seen.ok) << "rank " << name(*seat) << " should see" << ranks << ": " << seen;
    }
    const Reply stored = keeper_->ask("await " + store_ + " " + std::to_string(all.size()));
    EXPECT_TRUE(stored.ok) << "the store should know" << ranks << ": " << stored;
  }

  void check() {
    awaitViews();
    const auto all = members();
    const std::string known = " host 0 " + std::to_string(kKnown);
    for (Seat* seat : all) seat->process->say("sum-load " + name(*seat) + known);
    for (Seat* seat : all) {
      EXPECT_EQ(seat->process->answer().text, sumOf(seat->known)) << "own, of " << name(*seat);
    }
    Seat* by = anyOf(all);
    if (!by) return;
    for (Seat* seat : all) {
      expectOk(by->process->ask("sum " + name(*seat) + known), sumOf(seat->known));
      expectOk(by->process->ask("sum-load " + name(*seat) + known), sumOf(seat->known));
    }
    if (Seat* fresh = anyOf(untouched())) checkRest(*fresh);
    if (gone_ && freeRanks().contains(*gone_)) checkGone(*by, *gone_);
  }
  std::vector<Seat*> untouched() {
    return those([](const Seat& seat) { return seat.rank && seat.restUntouched; });
  }
  static void checkRest(Seat& seat) {
    static const std::string zeros = sumOf(std::string(kRest, '\0'));
    expectOk(seat.process->ask("sum-load " + name(seat) + " host " + std::to_string(kKnown) + " " +
                               std::to_string(kRest)),
             zeros);
  }
  // A pointer into the slot of who left reaches nobody. For who came later there never was one.
  static void checkGone(Seat& by, uint32_t rank) {
    const std::string slot = std::to_string(rank) + " host 0 ";
    EXPECT_EQ(by.process->ask("put " + slot + "100 1").code, "not_found");
    EXPECT_EQ(by.process->ask("sum " + slot + std::to_string(kKnown)).code, "not_found");
    if (!by.had.contains(rank)) return;
    expectOk(by.process->ask("sum-load " + slot + "100000"), sumOf(std::string(100000, '\0')));
  }

  void step() {
    const auto out = those([](const Seat& seat) { return !seat.rank; });
    switch (below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return out.empty() ? put() : join(anyOf(out));
      case 4:
        return leave(anyOf(members()));
      case 5:
        return kill(anyOf(members()));
      case 6:
        return killInMidCopy();
      case 7:
        return below(4) == 0 ? stop() : put();
      case 8:
        return move();
      case 9:
        return batch();
      default:
        return put();
    }
  }

  std::mt19937_64 random_;
  std::array<Seat, kSeats> seats_;
  std::optional<uint32_t> gone_;  // the rank of who left last
  uint64_t step_ = 0;
  std::string history_;
};

TEST_F(PoolChurn, membersComeGoDieAndStopInAnyOrder) {
  const uint64_t seed = fromEnvironment("HMC_CHURN_SEED").value_or(1);
  const auto seconds = fromEnvironment("HMC_CHURN_SECONDS");
  random_.seed(seed);
  std::cout << "HMC_CHURN_SEED=" << seed << std::endl;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds.value_or(0));
  while (seconds ? std::chrono::steady_clock::now() < end : step_ < kSteps) {
    ++step_;
    step();
    check();
    ASSERT_FALSE(HasFailure()) << "seed " << seed << ", after" << history_;
    if (history_.size() > 8000) history_.erase(0, history_.find('\n', 4000));
  }
  std::cout << step_ << " steps" << std::endl;
}

}  // namespace
}  // namespace hmc::test
