#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "base/fork_guard.h"
#include "control/control.h"
#include "hmc/deadline.h"
#include "hmc/result.h"
#include "store/store.h"
#include "store/wire.h"

namespace hmc::store {

using control::Channel;
using ChannelPtr = std::shared_ptr<Channel>;

// What a client's connection does beside its calls, on the connection's own thread.
class ConnectionUpkeep {
 public:
  virtual ~ConnectionUpkeep() = default;
  // Called when the server is in reach again, when wake() was called, and at the time that the last
  // call answered.
  virtual Deadline maintain(const ChannelPtr& channel) = 0;
};

// A client's connection to its server, made again whenever it breaks, by one thread that is there
// for nothing else but that and the upkeep. Safe from any thread.
class Connection final : private control::ControlEvents {
 public:
  // Returns when the server has answered. `upkeep` must outlive it.
  static Result<std::unique_ptr<Connection>> open(const std::string& address,
                                                  const StoreOptions& options,
                                                  ConnectionUpkeep& upkeep, Deadline deadline);
  // Not in a child of the process that made it: there it can only be left alone.
  ~Connection() override { close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Ends its threads and what they wait for; nothing else may be called afterwards.
  void close();

  // Whether a request may be sent again when its answer is lost.
  enum class Repeat { no, yes };
  // `stop` ends it with cancelled.
  Result<std::string> call(const Request& request, Repeat repeat, Deadline deadline,
                           const std::stop_token& stop = {});

  // Null while the server is out of reach.
  ChannelPtr channel() const;
  // The channel, waiting for it.
  Result<ChannelPtr> waitForChannel(Deadline deadline, const std::stop_token& stop = {});
  void wake();
  const ForkGuard& fork() const { return fork_; }

 private:
  Connection(std::string address, ConnectionUpkeep& upkeep)
      : address_(std::move(address)), upkeep_(upkeep) {}
  Status joined(const ChannelPtr& channel) override;
  Status joinedAgain(const ChannelPtr&, const std::string&) override { return Status(); }
  void left(const ChannelPtr&, const Status&) override { wake(); }
  void answer(const ChannelPtr& channel, uint16_t method, std::string_view request,
              Channel::Answered reply) override;
  void note(const ChannelPtr&, std::string) override {}

  Status connectOnce(Deadline deadline);
  Status connectUntil(Deadline deadline, const std::stop_token& stop);
  void serve();
  // True when the connection is to end, or shall not be.
  bool endsWithin(Deadline until, const std::stop_token& stop = {});
  Status outOfReach(const std::string& what) const;  // with mutex_

  const std::string address_;
  ConnectionUpkeep& upkeep_;
  const ForkGuard fork_;
  std::unique_ptr<control::Control> control_;

  mutable std::mutex mutex_;         // guards everything below
  std::condition_variable changed_;  // the channel, or woken_, or ending_
  ChannelPtr channel_;
  Status problem_;  // why the last attempt to connect failed
  bool woken_ = false;
  bool ending_ = false;
  std::jthread thread_;  // set before anybody else sees the connection
};

}  // namespace hmc::store
