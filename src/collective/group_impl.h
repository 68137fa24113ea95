#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "collective/channel.h"
#include "collective/inbox.h"
#include "hmc/collective.h"

namespace hmc::collective {

class Operation;

// See hmc::Collective: who the other ranks are, and whose turn it is.
class GroupImpl {
 public:
  static Result<std::unique_ptr<GroupImpl>> begin(const CollectiveOptions& options);
  ~GroupImpl();
  GroupImpl(const GroupImpl&) = delete;
  GroupImpl& operator=(const GroupImpl&) = delete;

  const CollectiveOptions& options() const { return options_; }
  const std::string& address() const { return address_; }
  std::string path(uint32_t rank) const;
  Status status(uint32_t rank) const;
  Status connect(const std::vector<std::string>& addresses, Deadline deadline);

  // Runs one operation. `signature` is the same at all ranks that mean the same.
  template <class Run>
  Status run(const char* name, uint32_t signature, Timeout timeout, Run job);

  uint32_t rank() const { return options_.rank; }
  uint32_t size() const { return options_.size; }
  const Inbox& inbox() const { return inbox_; }
  const Inbox::Shape& shape() const { return shape_; }
  Channel& channel(uint32_t rank) { return *channels_[rank]; }
  // How often to look before sleeping: not at all where ranks of this host lack cores.
  uint32_t spins() const { return spins_; }
  // Learns from how long a sleep was, whether looking some more would have been better.
  void slept(std::chrono::nanoseconds time);

 private:
  GroupImpl(CollectiveOptions options, Node node, Inbox::Shape shape, LocalRegion memory,
            LocalRegion outbox, std::string address);
  Status reach(uint32_t rank, const std::string& address, Deadline deadline);
  void hear();
  Status start(Operation& operation);
  Status finish(const Operation& operation, Status outcome);

  const CollectiveOptions options_;
  Node node_;
  const Inbox::Shape shape_;
  const LocalRegion memory_;
  const LocalRegion outbox_;
  const Inbox inbox_;
  const std::string address_;
  uint32_t spins_ = 0;
  uint32_t mostSpins_ = 0;
  std::vector<std::unique_ptr<Channel>> channels_;  // by rank; none to ourselves
  std::unordered_map<std::string, Channel*> byPeer_;
  std::jthread listener_;  // takes the notes of ranks whose memory is not mapped

  std::mutex turn_;
  uint64_t operations_ = 0;
  bool connected_ = false;
  Status broken_;
};

}  // namespace hmc::collective
