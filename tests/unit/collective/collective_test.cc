#include "hmc/collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <numeric>
#include <thread>
#include <vector>

#include "fakes/must.h"

namespace hmc {
namespace {

using test::must;
using testing::HasSubstr;

constexpr std::chrono::seconds kLong{60};

// All ranks of a group in this process.
class Ranks {
 public:
  Ranks(uint32_t size, const std::vector<std::string>& transports, size_t memory = 96 << 10) {
    std::vector<std::string> addresses;
    for (uint32_t rank = 0; rank < size; ++rank) {
      CollectiveOptions options;
      options.rank = rank;
      options.size = size;
      options.memory = memory;
      options.node.transports = transports;
      options.goOn = [this] { return !stopped_.load(); };
      ranks_.push_back(must(Collective::begin(options)));
      addresses.push_back(ranks_.back().address());
    }
    const auto connected = all([&](Collective& one) { return one.connect(addresses, kLong); });
    for (const Status& status : connected) EXPECT_TRUE(status.ok()) << status.toString();
  }

  // Every rank on a thread of its own.
  std::vector<Status> all(const std::function<Status(Collective&)>& run) {
    std::vector<std::future<Status>> running;
    for (auto& one : ranks_) running.push_back(std::async(std::launch::async, run, std::ref(one)));
    std::vector<Status> outcomes;
    for (auto& one : running) outcomes.push_back(one.get());
    return outcomes;
  }
  void expectAll(const std::function<Status(Collective&)>& run) {
    for (const Status& status : all(run)) EXPECT_TRUE(status.ok()) << status.toString();
  }
  Collective& operator[](size_t rank) { return ranks_[rank]; }
  void kill(size_t rank) {
    ranks_[rank] = must(Collective::begin(CollectiveOptions()));  // ends the one before
  }
  void stop() { stopped_ = true; }

 private:
  std::atomic<bool> stopped_{false};
  std::vector<Collective> ranks_;
};

struct Place {
  uint32_t ranks;
  std::vector<std::string> transports;
};

class CollectiveTest : public testing::TestWithParam<Place> {
 protected:
  const uint32_t size = GetParam().ranks;
  Ranks ranks{size, GetParam().transports};
};

// Of a few bytes, one piece, and several of them.
const std::vector<size_t> kCounts{0, 1, 5, 1000, 20011, 70001};

TEST_P(CollectiveTest, AllreduceAddsEverybodysNumbers) {
  ranks.expectAll([&](Collective& one) {
    for (size_t count : kCounts) {
      std::vector<int32_t> data(count);
      std::iota(data.begin(), data.end(), static_cast<int32_t>(one.rank()));
      const Status status =
          one.allreduce(data.data(), count, DataType::int32, ReduceOp::sum, kLong);
      if (!status.ok()) return status;
      for (size_t i = 0; i < count; ++i) {
        const size_t wanted = i * size + size * (size - 1) / 2;
        if (data[i] != static_cast<int32_t>(wanted)) {
          return Status(Code::failed,
                        "number " + std::to_string(i) + " is " + std::to_string(data[i]));
        }
      }
    }
    return Status();
  });
}

TEST_P(CollectiveTest, AllreduceGivesAllRanksTheSameBits) {
  for (size_t count : {100, 30011}) {
    std::vector<std::vector<float>> data(size, std::vector<float>(count));
    ranks.expectAll([&](Collective& one) {
      auto& mine = data[one.rank()];
      for (size_t i = 0; i < count; ++i) {
        mine[i] = 0.1F * static_cast<float>(i) + 1e7F / static_cast<float>(one.rank() + 1);
      }
      return one.allreduce(mine.data(), count, DataType::float32, ReduceOp::sum, kLong);
    });
    for (const auto& other : data) EXPECT_EQ(other, data[0]);
  }
}

TEST_P(CollectiveTest, ReduceScatterGivesEachRankItsPart) {
  ranks.expectAll([&](Collective& one) {
    for (size_t count : kCounts) {
      std::vector<int64_t> sent(count * size);
      for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<int64_t>(i * one.rank());
      std::vector<int64_t> got(count);
      Status status =
          one.reduceScatter(sent.data(), got.data(), count, DataType::int64, ReduceOp::max, kLong);
      for (size_t i = 0; status.ok() && i < count; ++i) {
        const auto wanted = static_cast<int64_t>((one.rank() * count + i) * (size - 1));
        if (got[i] != wanted) status = Status(Code::failed, "wrong at " + std::to_string(i));
      }
      if (!status.ok()) return status;
    }
    return Status();
  });
}

TEST_P(CollectiveTest, PartsOfAReduceScatterLieAnywhere) {
  ranks.expectAll([&](Collective& one) {
    constexpr size_t kCount = 20011;
    std::vector<std::vector<int32_t>> sent;
    std::vector<const void*> parts;
    for (uint32_t rank = 0; rank < size; ++rank) {
      sent.emplace_back(kCount, static_cast<int32_t>(100 * rank + one.rank()));
    }
    for (const auto& part : sent) parts.push_back(part.data());
    auto& mine = sent[one.rank()];  // receives, too
    const Status status =
        one.reduceScatter(parts, mine.data(), kCount, DataType::int32, ReduceOp::max, kLong);
    const auto wanted = static_cast<int32_t>(100 * one.rank() + size - 1);
    return mine == std::vector<int32_t>(kCount, wanted) ? status : Status(Code::failed, "wrong");
  });
}

// Long enough to be written past the cache, at a place that is not aligned.
TEST_P(CollectiveTest, LargeBytesArrive) {
  constexpr size_t kCount = (size_t{4} << 20) + 77;
  std::vector<uint8_t> wanted(kCount);
  std::iota(wanted.begin(), wanted.end(), static_cast<uint8_t>(1));
  ranks.expectAll([&](Collective& one) {
    std::vector<uint8_t> data(kCount + 3);
    if (one.rank() == 0) std::copy(wanted.begin(), wanted.end(), data.begin() + 3);
    const Status status = one.broadcast(data.data() + 3, kCount, 0, kLong);
    const bool same = std::equal(wanted.begin(), wanted.end(), data.begin() + 3);
    return same ? status : Status(Code::failed, "wrong bytes");
  });
}

TEST_P(CollectiveTest, BroadcastSpreadsTheRootsBytes) {
  ranks.expectAll([&](Collective& one) {
    for (size_t count : kCounts) {
      for (uint32_t root : {0U, size - 1}) {
        std::vector<uint8_t> data(count, static_cast<uint8_t>(one.rank()));
        Status status = one.broadcast(data.data(), count, root, kLong);
        if (status.ok() && data != std::vector<uint8_t>(count, static_cast<uint8_t>(root))) {
          status = Status(Code::failed, "wrong bytes");
        }
        if (!status.ok()) return status;
      }
    }
    return Status();
  });
}

TEST_P(CollectiveTest, AllgatherAndAlltoallMoveEveryPart) {
  ranks.expectAll([&](Collective& one) {
    for (size_t count : kCounts) {
      const auto part = [&](uint32_t from, uint32_t to) {
        return std::vector<uint16_t>(count, static_cast<uint16_t>(100 * from + to));
      };
      const auto joined = [&](const std::function<std::vector<uint16_t>(uint32_t)>& make) {
        std::vector<uint16_t> all;
        for (uint32_t rank = 0; rank < size; ++rank) {
          const auto next = make(rank);
          all.insert(all.end(), next.begin(), next.end());
        }
        return all;
      };
      std::vector<uint16_t> got(count * size);
      const auto mine = part(one.rank(), 0);
      Status status = one.allgather(mine.data(), got.data(), 2 * count, kLong);
      if (status.ok() && got != joined([&](uint32_t rank) { return part(rank, 0); })) {
        status = Status(Code::failed, "allgather");
      }
      if (!status.ok()) return status;
      const auto sent = joined([&](uint32_t rank) { return part(one.rank(), rank); });
      status = one.alltoall(sent.data(), got.data(), 2 * count, kLong);
      if (status.ok() && got != joined([&](uint32_t rank) { return part(rank, one.rank()); })) {
        status = Status(Code::failed, "alltoall");
      }
      if (!status.ok()) return status;
    }
    return Status();
  });
}

TEST_P(CollectiveTest, ABarrierWaitsForAll) {
  std::atomic<uint32_t> came{0};
  ranks.expectAll([&](Collective& one) {
    for (uint32_t round = 1; round <= 50; ++round) {
      came.fetch_add(1);
      if (Status status = one.barrier(kLong); !status.ok()) return status;
      if (came.load() < round * size) return Status(Code::failed, "too early");
    }
    return Status();
  });
}

TEST_P(CollectiveTest, ExchangesPartsOfDifferentSizes) {
  ranks.expectAll([&](Collective& one) {
    const auto sizeOfPart = [](uint32_t from, uint32_t to) { return 1000 * from + 7 * to; };
    std::vector<std::vector<char>> out(size);
    std::vector<std::vector<char>> in(size);
    std::vector<ExchangePart> parts(size);
    for (uint32_t rank = 0; rank < size; ++rank) {
      out[rank].assign(sizeOfPart(one.rank(), rank), static_cast<char>(one.rank()));
      in[rank].resize(sizeOfPart(rank, one.rank()));
      parts[rank] = {out[rank].data(), out[rank].size(), in[rank].data(), in[rank].size()};
    }
    Status status = one.exchange(parts, kLong);
    for (uint32_t rank = 0; status.ok() && rank < size; ++rank) {
      if (in[rank] != std::vector<char>(in[rank].size(), static_cast<char>(rank))) {
        status = Status(Code::failed, "wrong bytes");
      }
    }
    return status;
  });
}

INSTANTIATE_TEST_SUITE_P(, CollectiveTest,
                         testing::Values(Place{1, {}}, Place{2, {}}, Place{3, {}}, Place{5, {}},
                                         Place{9, {}}, Place{2, {"tcp"}}, Place{3, {"tcp"}}),
                         [](const auto& one) {
                           return (one.param.transports.empty() ? "mapped" : "tcp") +
                                  std::to_string(one.param.ranks);
                         });

class BrokenGroupTest : public testing::TestWithParam<std::vector<std::string>> {
 protected:
  Ranks ranks{3, GetParam()};
};

TEST_P(BrokenGroupTest, NamesARankThatIsGone) {
  EXPECT_TRUE(ranks[0].status(1).ok());
  ranks.kill(1);
  float number = 1;
  const auto outcomes = ranks.all([&](Collective& one) {
    float mine = number;
    return one.size() == 1 ? Status()
                           : one.allreduce(&mine, 1, DataType::float32, ReduceOp::sum, kLong);
  });
  for (size_t rank : {0, 2}) {
    EXPECT_EQ(outcomes[rank].code(), Code::disconnected) << outcomes[rank].toString();
    EXPECT_THAT(outcomes[rank].message(), HasSubstr("rank 1"));
    EXPECT_EQ(ranks[rank].barrier(kLong).message(), outcomes[rank].message());
    EXPECT_EQ(ranks[rank].status(1).code(), Code::disconnected);
    EXPECT_TRUE(ranks[rank].status(rank).ok());
  }
}

TEST_P(BrokenGroupTest, NamesARankThatDoesNotCome) {
  const auto outcomes = ranks.all([](Collective& one) {
    return one.rank() == 2 ? Status() : one.barrier(std::chrono::milliseconds(50));
  });
  EXPECT_EQ(outcomes[0].code(), Code::deadlineExceeded) << outcomes[0].toString();
  EXPECT_THAT(outcomes[0].message(), HasSubstr("rank 2 did not take part in the barrier"));
}

TEST_P(BrokenGroupTest, ARankLearnsThatAnotherHasGivenUp) {
  EXPECT_EQ(ranks[0].barrier(std::chrono::milliseconds(10)).code(), Code::deadlineExceeded);
  const Status status = ranks[1].barrier(kLong);
  EXPECT_EQ(status.code(), Code::disconnected) << status.toString();
  EXPECT_THAT(status.message(), HasSubstr("given up"));
}

TEST_P(BrokenGroupTest, RefusesAnotherOperation) {
  const auto outcomes = ranks.all([](Collective& one) {
    std::vector<int> data(10);
    return one.rank() == 0 ? one.barrier(kLong)
                           : one.allreduce(data.data(), 10, DataType::int32, ReduceOp::sum, kLong);
  });
  bool named = false;
  for (const Status& status : outcomes) {
    EXPECT_FALSE(status.ok());
    named |= status.message().find("is in another operation") != std::string::npos;
  }
  EXPECT_TRUE(named);
}

TEST_P(BrokenGroupTest, ALeavingRankHoldsUpNobody) {
  std::vector<char> data(1000);
  auto last = std::async(std::launch::async, [&] {
    std::vector<char> mine(1000);
    return ranks[2].broadcast(mine.data(), 1000, 0, kLong);
  });
  auto middle = std::async(std::launch::async, [&] {
    std::vector<char> mine(1000);
    return ranks[1].broadcast(mine.data(), 1000, 0, kLong);
  });
  EXPECT_TRUE(ranks[0].broadcast(data.data(), 1000, 0, kLong).ok());
  EXPECT_TRUE(middle.get().ok());
  ranks.kill(1);
  EXPECT_TRUE(last.get().ok());
}

TEST_P(BrokenGroupTest, CanBeInterrupted) {
  auto waiting = std::async(std::launch::async, [&] { return ranks[0].barrier(kLong); });
  ranks.stop();
  EXPECT_EQ(waiting.get().code(), Code::cancelled);
}

INSTANTIATE_TEST_SUITE_P(, BrokenGroupTest,
                         testing::Values(std::vector<std::string>{},
                                         std::vector<std::string>{"tcp"}),
                         [](const auto& one) { return one.param.empty() ? "mapped" : "tcp"; });

TEST(Collective, SaysWhatIsWrongWithACall) {
  CollectiveOptions options;
  options.rank = 2;
  options.size = 2;
  EXPECT_THAT(Collective::begin(options).status().message(), HasSubstr("rank is 2"));
  options.rank = 0;
  Collective one = must(Collective::begin(options));
  EXPECT_THAT(one.barrier(kLong).message(), HasSubstr("before connect()"));
  EXPECT_THAT(one.broadcast(nullptr, 0, 2, kLong).message(), HasSubstr("root is 2"));
  EXPECT_THAT(one.exchange({}, kLong).message(), HasSubstr("0 parts"));
  const std::vector<const void*> none;
  const Status parts = one.reduceScatter(none, nullptr, 1, DataType::int8, ReduceOp::sum, kLong);
  EXPECT_THAT(parts.message(), HasSubstr("0 parts"));
  EXPECT_THAT(one.connect({}, kLong).message(), HasSubstr("0 addresses"));
  const Status late = one.connect({one.address(), ""}, std::chrono::milliseconds(10));
  EXPECT_EQ(late.code(), Code::deadlineExceeded);
  EXPECT_THAT(late.message(), HasSubstr("rank 1 of 2 did not connect"));
}

}  // namespace
}  // namespace hmc
