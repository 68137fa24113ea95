#pragma once

#include <condition_variable>
#include <vector>

#include "transport/transport.h"
#include "transport/verbs/channel.h"
#include "transport/verbs/service.h"

namespace hmc::verbs {

// The queue pairs to one peer: some that send our operations, as many that serve the peer's, and
// one for control messages. A queue pair never does both, so that an error of one side does not end
// the other side's operations.
class VerbsLink final : public Link, private Channel::Owner, private Service::Member {
 public:
  static Result<std::unique_ptr<Link>> create(const Nics& nics, int channels, Service& service,
                                              Progress& progress, TransportCounters& counters,
                                              const LinkOptions& options);
  ~VerbsLink() override;

  const std::string& address() const override { return encoded_; }
  Status connect(std::string_view peerAddress) override;
  size_t post(std::span<const Op> ops) override;
  void close(const Status& why) override;
  Result<std::unique_ptr<RemoteMemory>> importKey(std::string_view key, Deadline deadline,
                                                  void* place) override;

 private:
  using Clock = Loop::Clock;

  VerbsLink(const Nics& nics, Service& service, Progress& progress, TransportCounters& counters,
            const LinkOptions& options)
      : nics_(nics),
        largest_(largestPiece(nics)),
        service_(service),
        progress_(progress),
        initiator_(options.initiator),
        counters_(counters),
        fenceLength_(options.lease->length()) {}
  Status makeQueuePairs(size_t channels);
  Address describe() const;

  // Channel::Owner
  void failed(Channel& channel, const Op* op, const ibv_wc& why) override;
  void drained(Channel& channel) override;
  // Service::Member
  void received(const ControlMessage& message) override;
  void lost(const Status& why) override;
  Clock::time_point timer() const override { return timer_.load(std::memory_order_relaxed); }
  void expire() override;

  // These with mutex_ held.
  Status connectLocked();
  void sendLocked(const ControlMessage& message);
  void resetIncoming(const ControlMessage& message);
  void closeLocked(const Status& why);
  void settleLocked();
  std::string peerName() const;
  size_t postOnOneChannel(std::span<const Op> ops);
  bool drainedLocked() const;
  bool holdingLocked() const;

  void takeBackEverything();

  const Nics& nics_;
  const size_t largest_;
  Service& service_;
  Progress& progress_;
  const bool initiator_;
  TransportCounters& counters_;
  const std::chrono::milliseconds fenceLength_;
  std::string encoded_;

  std::mutex mutex_;  // guards what follows, and the posting side of the channels
  std::condition_variable changed_;
  std::unique_ptr<ControlQp> control_;
  std::vector<std::unique_ptr<Channel>> channels_;
  size_t favourite_ = 0;  // the channel that took the last operations
  std::vector<QueuePair> incoming_;
  Address peer_;
  bool connected_ = false;
  bool up_ = false;      // the peer has said hello
  bool closed_ = false;  // and why_ says why
  bool fenced_ = false;  // nothing of what we asked is applied any more
  Status why_;

  std::atomic<Clock::time_point> timer_{Clock::time_point::max()};
};

}  // namespace hmc::verbs
