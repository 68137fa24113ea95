#pragma once

#include <vector>

#include "transport/verbs/progress.h"

namespace hmc::verbs {

// All channels to one peer, and the operations that an error on one of them swept away: these are
// held until that channel is reset, and then posted again. The link's mutex guards it.
class Channels {
 public:
  // A channel may have this many bytes more under way than the least busy one before we change
  // over: requests that go to the NIC together cost one doorbell.
  static constexpr uint64_t kUneven = 256 << 10;

  explicit Channels(TransportCounters& counters) : counters_(counters) {}
  // `count` of them, spread over the NICs.
  Status create(Channel::Owner& owner, const Nics& nics, size_t count, Progress& progress);
  size_t size() const { return all_.size(); }
  Channel& operator[](size_t index) const { return *all_[index].channel; }

  // The first of them to the peer's ends; the rest stays down.
  Status connect(const Address& peer);

  // How many operations, from the front, were started: all on one channel, 0 while none has room.
  size_t post(std::span<const Op> ops);
  // A NIC refused work for which it had room: the link is of no use any more.
  const Status& refusal() const { return refusal_; }

  void hold(const Channel& channel, const Op& op) { all_[channel.index()].held.push_back(op); }
  // The peer has reset its end of a channel: connects it and posts what was held.
  Status resume(Channel& channel);

  void stop();
  bool drained() const;
  bool holding() const;
  void failHeld(const Status& why);

 private:
  struct Entry {
    std::unique_ptr<Channel> channel;
    std::vector<Op> held;
  };
  Channel* pick();

  TransportCounters& counters_;
  std::vector<Entry> all_;
  size_t favourite_ = 0;
  Status refusal_;
};

// Is this completion status about one operation? After all others the peer is out of reach.
bool concernsOneOperation(ibv_wc_status status);
// Why the NICs refused `op`.
Status refusal(const Op& op, const ibv_wc& wc, const Library& library);

}  // namespace hmc::verbs
