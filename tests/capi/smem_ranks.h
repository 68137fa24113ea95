#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "peer.h"
#include "process.h"

namespace hmc::test {

inline constexpr size_t kMiB = size_t{1} << 20;

inline std::string freeUrl() {
  return "tcp://127.0.0.1:" + std::to_string(freePort());
}

// A process of smem_peer.cc.
class SmemRank : public Process {
 public:
  explicit SmemRank(const Environment& environment = {}) : Process({HMC_SMEM_PEER}, environment) {}
  // In a network namespace of that name.
  explicit SmemRank(const std::string& netns)
      : Process({"/sbin/ip", "netns", "exec", netns, HMC_SMEM_PEER}) {}
  // Whatever happened to it, one that was not killed ends by itself and cleanly.
  ~SmemRank() {
    if (!runs()) return;
    EXPECT_EQ(finish(), 0);
  }
};

// Ranks that all do the same at the same time.
class SmemRanks {
 public:
  explicit SmemRanks(size_t count, const Process::Environment& environment = {}) {
    for (size_t i = 0; i < count; ++i) all_.push_back(std::make_unique<SmemRank>(environment));
  }
  // One in each of these network namespaces.
  explicit SmemRanks(const std::vector<std::string>& hosts) {
    for (const std::string& host : hosts) all_.push_back(std::make_unique<SmemRank>(host));
  }
  // In the other order: rank 0 serves the store.
  ~SmemRanks() {
    while (!all_.empty()) all_.pop_back();
  }
  SmemRank& operator[](size_t rank) { return *all_[rank]; }
  size_t count() const { return all_.size(); }

  // "{}" in the line is the rank.
  std::vector<Reply> ask(const std::string& line) {
    for (size_t rank = 0; rank < all_.size(); ++rank) all_[rank]->say(forRank(line, rank));
    std::vector<Reply> replies;
    replies.reserve(all_.size());
    for (auto& one : all_) replies.push_back(one->answer());
    return replies;
  }
  void expectOk(const std::string& line) {
    const auto replies = ask(line);
    for (size_t rank = 0; rank < replies.size(); ++rank)
      EXPECT_TRUE(replies[rank].ok) << "rank " << rank << ", " << line << ": " << replies[rank];
  }
  // The last rank is killed while all others are in a barrier of object 0.
  void expectAKillToEndABarrier() {
    const size_t last = all_.size() - 1;
    for (size_t rank = 0; rank < last; ++rank) all_[rank]->say("barrier 0");
    all_[last]->kill();
    for (size_t rank = 0; rank < last; ++rank) {
      const Reply reply = all_[rank]->answer();
      EXPECT_EQ(reply.code, "-1") << reply;
      EXPECT_NE(reply.text.find("rank " + std::to_string(last)), std::string::npos) << reply;
    }
  }

 private:
  static std::string forRank(std::string line, size_t rank) {
    const size_t at = line.find("{}");
    if (at != std::string::npos) line.replace(at, 2, std::to_string(rank));
    return line;
  }

  std::vector<std::unique_ptr<SmemRank>> all_;
};

}  // namespace hmc::test
