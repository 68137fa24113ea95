#pragma once

#include <condition_variable>
#include <vector>

#include "transport/transport.h"
#include "transport/verbs/channel.h"
#include "transport/verbs/progress.h"
#include "transport/verbs/service.h"

namespace hmc::verbs {

// The queue pairs to one peer: some over which we ask, as many over which it asks, and one for
// words. That a queue pair only asks or only answers keeps an error of one side's from ending the
// other's operations.
class VerbsLink final : public Link, private Channel::Owner, private Service::Member {
 public:
  static Result<std::unique_ptr<Link>> create(const Nics& nics, int channels, Service& service,
                                              Progress& progress, const LinkOptions& options);
  ~VerbsLink() override;

  const std::string& address() const override { return encoded_; }
  Status connect(std::string_view peerAddress) override;
  Result<std::unique_ptr<RemoteMemory>> importKey(std::string_view key, Deadline deadline,
                                                  void* place) override;
  size_t post(std::span<const Op> ops) override;
  void close(const Status& why) override;

 private:
  using Clock = Service::Clock;

  VerbsLink(const Nics& nics, Service& service, Progress& progress, const LinkOptions& options)
      : nics_(nics),
        largest_(largestPiece(nics)),
        service_(service),
        progress_(progress),
        initiator_(options.initiator),
        lease_(options.lease) {}
  Status makeQueuePairs(int channels);
  Address describe() const;

  // Channel::Owner
  void failed(Channel& channel, const Op* op, const ibv_wc& why) override;
  void drained(Channel& channel) override;
  // Service::Member
  void heard(const Word& word) override;
  void lost(const Status& why) override;
  bool uses(const Nic& nic) const override;
  Clock::time_point timer() const override { return timer_.load(std::memory_order_relaxed); }
  void expire() override;

  std::chrono::milliseconds fenceLength() const;

  // These with mutex_ held.
  Status connectLocked(const Address& peer);
  Channel* pick();
  void closeLocked(const Status& why);
  void settleLocked();
  void sayLocked(const Word& word);
  void renewIncoming(const Word& word);
  void resume(Channel& channel);
  bool allDrainedLocked() const;
  bool anyHeldLocked() const;
  void takeBackEverything();

  const Nics& nics_;
  const size_t largest_;
  Service& service_;
  Progress& progress_;
  const bool initiator_;
  const std::shared_ptr<Lease> lease_;
  std::string encoded_;

  std::mutex mutex_;  // guards what follows, and the posting side of the channels
  std::condition_variable changed_;
  std::unique_ptr<Words> words_;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<QueuePair> incoming_;
  Address peer_;
  bool connected_ = false;
  bool up_ = false;      // the peer has said hello
  bool closed_ = false;  // and why_ says why
  bool fenced_ = false;  // nothing of what we asked is applied any more
  Status why_;
  std::vector<std::vector<Op>> held_;  // by channel: swept away, to be posted again or to fail
  size_t favourite_ = 0;

  std::atomic<Clock::time_point> timer_{Clock::time_point::max()};
};

}  // namespace hmc::verbs
