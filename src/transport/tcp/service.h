#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <variant>

#include "transport/tcp/greeting.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/target.h"

namespace hmc::tcp {

// The thread that serves what peers ask of us, and the listeners at which they connect. It never
// blocks on a peer and sleeps when there is nothing to do. Safe from any thread.
class Service {
 public:
  // A link. Its methods are called on the service thread, with the service's mutex held.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Whether these Greeting::kSize bytes open another stream of this link.
    virtual bool accepts(const char* greeting) = 0;
    // A connection over which we ask.
    virtual void connected(Fd fd) = 0;
    virtual Lease& lease() const = 0;
  };

  // A connection that has sent no greeting after `timeout` is closed.
  static Result<std::unique_ptr<Service>> create(Exports& exports,
                                                 std::chrono::milliseconds timeout);
  ~Service();

  // The port at which peers reach us on that address; listens there from the first call on.
  Result<uint16_t> open(const std::string& address);
  // From now on connections with this token are offered to `owner`, until drop(owner).
  void expect(const std::string& token, Owner& owner);
  // Serves a stream of `owner`, after sending the greeting.
  void serve(Owner& owner, Fd fd, std::string greeting);
  // Forgets the owner and drops its streams. When it returns no byte moves over them any more.
  void drop(Owner& owner);

 private:
  struct Listener {
    Fd fd;
    uint16_t port;
  };
  // A connection that has not sent its whole greeting yet.
  struct Pending {
    Fd fd;
    char greeting[Greeting::kSize];
    size_t size;
  };
  struct Session {
    std::unique_ptr<TargetStream> stream;
    Owner* owner;
    bool sending;  // which readiness we wait for
  };
  using Entry = std::variant<Listener, Pending, Session>;

  Service(Exports& exports, std::chrono::milliseconds timeout, Fd epoll, Fd wake);
  void run(const std::stop_token& stop);
  bool spinning(Deadline::Clock::time_point lastTraffic) const;
  int sleepMs();
  void dropLatePending();

  // These with mutex_ held. handle() answers whether a peer's bytes moved.
  bool handle(uint64_t id, uint32_t events);
  void accept(Listener& listener);
  void shedLoad(Listener& listener);
  void readGreeting(uint64_t id, Pending& pending);
  void startSession(Fd fd, const char* greeting);
  uint64_t add(int fd, uint32_t events, Entry entry);
  void addSession(Owner& owner, Fd fd, std::string greeting);
  bool step(uint64_t id, Session& session, uint32_t events);
  bool pollRecent();

  Exports& exports_;
  const std::chrono::milliseconds timeout_;
  const Fd epoll_;
  const Fd wake_;
  // Held while one entry is handled, and guards everything below.
  std::mutex mutex_;
  uint64_t nextId_ = 1;  // 0 is wake_
  uint64_t recent_ = 0;  // the session that asked last
  std::map<uint64_t, Entry> entries_;
  std::map<uint64_t, Deadline> pending_;       // the oldest first
  std::map<std::string, uint64_t> listeners_;  // by address
  std::map<std::string, Owner*> owners_;       // by token
  Fd spare_;  // lets us accept and close a connection when all descriptors are in use
  std::jthread thread_;
};

}  // namespace hmc::tcp
