#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/loop.h"
#include "control/listener.h"
#include "control/pending_connection.h"

namespace hmc::control {

// The listeners of a Control and the connections that come through them, until each becomes a
// channel or goes. Lives on the control thread.
class Acceptor final : private PendingConnection::Owner {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // The dialler has said who it is and proved it. The owner ends the pending connection with one
    // of its last words, now or later.
    virtual void introduced(const std::shared_ptr<PendingConnection>& pending) = 0;
    // It is gone and needs no answer.
    virtual void dropped(const std::shared_ptr<PendingConnection>& pending) = 0;
  };

  // `patience`: how long a handshake may take.
  Acceptor(Owner& owner, Loop& loop, std::string id, std::string secret,
           std::chrono::milliseconds patience);

  // Under its address.
  Status add(std::unique_ptr<Listener> listener);
  // False when there is no such listener.
  bool remove(const std::string& address) { return listeners_.erase(address) > 0; }
  void closeAll(const Status& why);
  bool holds(const std::shared_ptr<PendingConnection>& pending) const {
    return pending_.count(pending) > 0;
  }

 private:
  struct OpenListener {
    std::unique_ptr<Listener> listener;
    std::unique_ptr<Loop::Watch> watch;
    std::unique_ptr<Loop::Timer> pause;  // after an accept that failed
  };

  void acceptFrom(OpenListener& open);
  void take(const Address& at, Fd socket);
  void introduced(const std::shared_ptr<PendingConnection>& pending) override;
  void dropped(const std::shared_ptr<PendingConnection>& pending, const Status& why) override;
  bool full() const { return inHandshake_ >= kMostInHandshake; }
  void acceptMore();

  static constexpr size_t kMostInHandshake = 128;

  Owner& owner_;
  Loop& loop_;
  const std::string id_;
  const std::string secret_;
  const std::chrono::milliseconds patience_;
  std::map<std::string, OpenListener> listeners_;
  std::set<std::shared_ptr<PendingConnection>> pending_;
  size_t inHandshake_ = 0;  // those that are not introduced
};

}  // namespace hmc::control
