#include <hmc/collective.h>
#include <hmc/store.h>

#include <optional>

#include "caller.h"

namespace hmc::test {

namespace {

constexpr uint32_t kRanks = 2;
constexpr size_t kCount = 20000;

// Two ranks that do one operation over and over. One that failed leaves a group of no use, so they
// meet again after it.
class Group {
 public:
  Group(const char* name, const Circumstances& circumstances, const std::string& store) {
    options_.name = name;
    options_.rank = circumstances.first ? 0 : 1;
    options_.size = kRanks;
    options_.listen = "tcp://" + circumstances.host + ":0";
    options_.memory = size_t{256} << 10;
    options_.node.transports = {circumstances.transport};
    options_.node.lease = circumstances.lease;
    options_.node.heartbeat = circumstances.lease / 8;
    gatheringOptions_.store = store;
    gatheringOptions_.rank = options_.rank;
    gatheringOptions_.size = kRanks;
    gatheringOptions_.name = name;
  }

  template <class Operation>
  Status run(Timeout timeout, Operation operation) {
    const Deadline deadline(timeout);
    if (!connected_) {
      const Status met = meet(deadline);
      if (!met.ok()) return met;
      connected_ = true;
    }
    const Status outcome = operation(*collective_, Timeout(deadline.left()));
    broken_ = !outcome.ok();
    return outcome;
  }
  void tidyUp() {
    if (!broken_) return;
    broken_ = connected_ = false;
    collective_.reset();
    gathering_.reset();
  }

  std::vector<float> sent = std::vector<float>(kRanks * kCount);
  std::vector<float> received = std::vector<float>(kRanks * kCount);

 private:
  Status meet(Deadline deadline) {
    // A gathering that was late goes on where it was.
    if (!collective_) {
      auto begun = Collective::begin(options_);
      if (!begun.ok()) return begun.status();
      collective_.emplace(*std::move(begun));
      auto gathering = Gathering::begin(gatheringOptions_);
      if (!gathering.ok()) return gathering.status();
      gathering_.emplace(*std::move(gathering));
    }
    const auto addresses = gathering_->wait(collective_->address(), deadline.left());
    if (!addresses.ok()) {
      broken_ = addresses.status().code() != Code::deadlineExceeded;
      return addresses.status();
    }
    const Status met = collective_->connect(*addresses, deadline.left());
    broken_ = !met.ok();
    return met;
  }

  CollectiveOptions options_;
  GatheringOptions gatheringOptions_;
  std::optional<Gathering> gathering_;
  std::optional<Collective> collective_;
  bool connected_ = false;
  bool broken_ = false;
};

using Operation = Status (*)(Group&, Collective&, Timeout);

Status exchange(Group& group, Collective& ranks, Timeout timeout) {
  std::vector<ExchangePart> parts(kRanks);
  for (size_t rank = 0; rank < kRanks; ++rank) {
    parts[rank] = {group.sent.data() + rank * kCount, kCount * sizeof(float),
                   group.received.data() + rank * kCount, kCount * sizeof(float)};
  }
  return ranks.exchange(parts, timeout);
}

constexpr std::pair<const char*, Operation> kOperations[] = {
    {"barrier", [](Group&, Collective& ranks, Timeout t) { return ranks.barrier(t); }},
    {"broadcast",
     [](Group& group, Collective& ranks, Timeout t) {
       return ranks.broadcast(group.sent.data(), kCount * sizeof(float), 0, t);
     }},
    {"exchange", exchange},
    {"allgather",
     [](Group& group, Collective& ranks, Timeout t) {
       return ranks.allgather(group.sent.data(), group.received.data(), kCount * sizeof(float), t);
     }},
    {"alltoall",
     [](Group& group, Collective& ranks, Timeout t) {
       return ranks.alltoall(group.sent.data(), group.received.data(), kCount * sizeof(float), t);
     }},
    {"allreduce",
     [](Group& group, Collective& ranks, Timeout t) {
       return ranks.allreduce(group.sent.data(), kCount, DataType::float32, ReduceOp::sum, t);
     }},
    {"reduceScatter",
     [](Group& group, Collective& ranks, Timeout t) {
       return ranks.reduceScatter(group.sent.data(), group.received.data(), kCount,
                                  DataType::float32, ReduceOp::sum, t);
     }},
};

class CollectiveCaller : public Caller {
 public:
  explicit CollectiveCaller(const Circumstances& circumstances)
      : circumstances_(circumstances),
        store_(StoreServer::start("tcp://" + circumstances.host + ":0").value()) {}

  std::string introduction() const override { return store_.address(); }
  Status meet(const std::string& introduction) override {
    groups_.clear();
    for (const auto& operation : kOperations) {
      groups_.push_back(std::make_unique<Group>(
          operation.first, circumstances_, circumstances_.first ? store_.address() : introduction));
    }
    return Status();
  }
  std::vector<Call> calls() override {
    std::vector<Call> all;
    for (size_t i = 0; i < groups_.size(); ++i) {
      Group* const group = groups_[i].get();
      const Operation operation = kOperations[i].second;
      const auto run = [group, operation](Timeout timeout) {
        return group->run(timeout, [&](Collective& ranks, Timeout left) {
          return operation(*group, ranks, left);
        });
      };
      Call call{kOperations[i].first, run};
      call.after = [group] { group->tidyUp(); };
      all.push_back(std::move(call));
    }
    return all;
  }
  std::chrono::milliseconds ends() const override {
    return static_cast<int>(groups_.size()) * 2 * circumstances_.lease;
  }

 private:
  const Circumstances circumstances_;
  StoreServer store_;
  std::vector<std::unique_ptr<Group>> groups_;
};

}  // namespace

std::unique_ptr<Caller> makeCollectiveCaller(const Circumstances& circumstances) {
  return std::make_unique<CollectiveCaller>(circumstances);
}

}  // namespace hmc::test
