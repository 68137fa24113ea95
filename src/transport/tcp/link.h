#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "transport/tcp/address.h"
#include "transport/tcp/origin.h"
#include "transport/tcp/progress.h"
#include "transport/tcp/service.h"
#include "transport/tcp/tcp.h"
#include "transport/transport.h"

namespace hmc::tcp {

// The streams to one peer: some over which we ask, some over which it asks. One side dials them
// all: one of each to begin with, the others when there is much to move.
class TcpLink final : public Link, private Service::Owner, private Progress::Watched {
 public:
  static Result<std::unique_ptr<Link>> create(Service& service, Progress& progress,
                                              TransportCounters& counters,
                                              const TcpOptions& options,
                                              const LinkOptions& linkOptions);
  ~TcpLink() override;

  const std::string& address() const override { return encoded_; }
  Status connect(std::string_view peerAddress) override;
  Result<std::unique_ptr<RemoteMemory>> importKey(std::string_view key, Deadline,
                                                  void* place) override;
  size_t post(std::span<const Op> ops) override;
  void close(const Status& why) override;

 private:
  using Clock = Progress::Clock;

  TcpLink(Service& service, Progress& progress, TransportCounters& counters,
          const TcpOptions& options, const LinkOptions& linkOptions, Address address);

  bool accepts(const char* greeting) override;
  void connected(Connection connection, const char* greeting) override;
  Lease& lease() const override { return *lease_; }
  const std::string& credentials() const override { return credentials_; }
  std::optional<Dialled> dialAnother() override;
  bool ready(size_t stream, bool over) override;
  Clock::time_point timer() const override { return timer_.load(std::memory_order_relaxed); }
  bool expire() override;

  Result<Dialled> dialFor(Role role, size_t stream);
  Status dialFirst(const Address& peer);
  Status dialForward(size_t stream);
  void growForward();
  OriginStream* enqueue(const Op& op);
  void noticeEnd();
  std::string exchangeOfPeer();
  bool up() const;
  void setTimer();
  void awaitFence();

  Service& service_;
  Progress& progress_;
  const TcpOptions options_;
  const std::shared_ptr<Lease> lease_;
  const std::string credentials_;
  const std::function<void()> onEnd_;
  const std::string peerHost_;
  const Address address_;
  const std::string encoded_;
  uint64_t number_ = 0;                               // what progress_ calls us
  std::set<std::pair<uint32_t, uint32_t>> accepted_;  // streams of the peer; the service thread's
  std::vector<std::unique_ptr<OriginStream>> streams_;
  Address dialled_;                 // set before any stream is
  std::atomic<size_t> forward_{0};  // streams that were dialled, where this side does
  size_t reverse_ = 0;  // the same for the peer's; connect()'s, then the service thread's
  std::atomic<OriginStream*> preferred_{nullptr};  // one of streams_
  // When expire() has to look: the connections are late, or a fence is over.
  std::atomic<Clock::time_point> timer_{Clock::time_point::max()};
  std::atomic<bool> checked_{false};  // what moves has checksums; set by connect()
  std::atomic<bool> connected_{false};
  std::atomic<bool> closed_{false};
  std::mutex mutex_;               // guards what follows
  std::string peer_ = "the peer";  // for sentences
  std::string exchange_;           // the peer's
  Clock::time_point upBy_ = Clock::time_point::max();
};

}  // namespace hmc::tcp
