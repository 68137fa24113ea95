#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/loop.h"
#include "control/acceptor.h"
#include "control/channel_impl.h"
#include "control/control.h"
#include "control/dialler.h"

namespace hmc::control {

class ControlImpl final : public Control, private ChannelOwner, private PendingOwner {
 public:
  // Without `fds` there are no rings.
  ControlImpl(ControlOptions options, FdExchange* fds, ControlEvents& events,
              std::shared_ptr<Loop> loop);
  ~ControlImpl() override;

  const std::string& id() const override { return id_; }
  Loop& loop() override { return *loop_; }
  void setAttributes(std::string attributes) override;
  Result<std::string> listen(const std::string& address) override;
  Status closeListener(const std::string& address) override;
  Result<std::shared_ptr<Channel>> connect(const std::string& address,
                                           const std::string& attributes,
                                           Deadline deadline) override;

 private:
  using ChannelPtr = std::shared_ptr<ChannelImpl>;
  using PendingPtr = std::shared_ptr<PendingConnection>;

  // A pending connection that is answered when the question of who else talks to its Control is
  // settled: when our own dial to it is over, or when the channel that we believe in answers a
  // probe or ends.
  struct Held {
    PendingPtr pending;
    ChannelPtr channel;  // null: our own dial
    uint64_t probe = 0;
  };
  class DialMark;

  // connect(), on the caller's thread.
  Result<ChannelPtr> dialOnce(const Address& address, const std::string& attributes,
                              Deadline deadline, bool& retry);
  Result<ChannelPtr> open(Dialler& dialler, const Welcome& welcome, Deadline deadline);
  ChannelPtr connectedTo(const std::string& peerId) const;
  std::string attributes() const;

  // Which of two conversations with one peer stays; on the control thread.
  void introduced(const PendingPtr& pending) override;
  void dropped(const PendingPtr& pending, const Status& why) override;
  void decideAgain(const std::string& peerId);
  template <class Test>
  std::vector<Held> takeHeld(Test settled);
  template <class Handshaken>
  ChannelFacts factsOf(const Handshaken& connection, Identity peer) const;
  void decideAgain(const std::vector<Held>& held);
  bool claim(const Ident& ident);
  void accept(const PendingPtr& pending);

  // Channels, on the control thread.
  Status admitChannel(const ChannelPtr& channel, std::string_view first);
  void retire(const std::string& peerId);
  void ended(const ChannelPtr& channel, const Status& why) override;
  void gone(const ChannelPtr& channel) override;
  void ponged(const ChannelPtr& channel, uint64_t number) override;
  void beat();
  void scheduleBeat();

  const ControlOptions options_;
  FdExchange* const fds_;
  ControlEvents& events_;
  const std::string id_;
  const std::string hostId_;  // empty: as if no peer were on this host
  const std::shared_ptr<Loop> loop_;

  // Guards the seven below. The table is written on the control thread and read by connect().
  mutable std::mutex mutex_;
  std::map<std::string, ChannelPtr> table_;  // by the peer's id; never ourselves
  std::multiset<std::string> dialling_;      // ids that connect() is in a handshake with
  std::multiset<std::string> saidAgain_;     // those of them that it told of a channel
  std::multiset<std::string> accepting_;     // ids whose dial we are letting in
  std::string attributes_;
  size_t sockets_ = 0;  // channels that still have one
  std::condition_variable noSockets_;

  // All below belong to the control thread.
  std::set<ChannelPtr> channels_;  // all that have a socket, also those that linger
  Acceptor acceptor_;
  std::vector<Held> held_;
  Loop::Timer beat_;
  std::atomic<bool> warned_{false};  // that a listener is open to everybody
};

}  // namespace hmc::control
