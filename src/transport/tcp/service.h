#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/loop.h"
#include "base/tls_context.h"
#include "transport/tcp/address.h"
#include "transport/tcp/connection.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/target.h"
#include "transport/tcp/tcp.h"

namespace hmc::tcp {

// The thread that serves what peers ask of us, and the listeners at which they connect. It never
// blocks on a peer and sleeps when there is nothing to do. Safe from any thread.
class Service {
 public:
  // A link. Its methods are called on the service thread.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Whether these Greeting::kSize bytes open another stream of this link.
    virtual bool accepts(const char* greeting) = 0;
    // A connection over which we ask, opened with those bytes.
    virtual void connected(Connection connection, const char* greeting) = 0;
    virtual Lease& lease() const = 0;
    virtual const std::string& credentials() const = 0;
    // The peer asks for much: another connection over which it can, if this side dials and there
    // shall be more.
    struct Dialled {
      Connection connection;
      std::string greeting;
    };
    virtual std::optional<Dialled> dialAnother() = 0;
  };

  // A connection that has sent no greeting after `options.connectTimeout` is closed.
  static Result<std::unique_ptr<Service>> create(Exports& exports, const TcpOptions& options);
  ~Service() {
    if (loop_) loop_->stop();
  }

  // What comes altered is counted there from now on: before anybody connects.
  void countIn(TransportCounters& counters) { counters_ = &counters; }
  // The port at which peers reach us on that address; listens there from the first call on.
  Result<uint16_t> open(const std::string& address);
  // From now on connections with this token are offered to `owner`, until drop(owner).
  void expect(const std::string& token, Owner& owner);
  // Serves a stream of `owner`, after sending the greeting.
  void serve(Owner& owner, Connection connection, std::string greeting);
  // A socket that dials the link with that token at the peer, encrypted where all are.
  Result<Connection> secured(Fd fd, const std::string& token, const std::string& credentials);
  // Forgets the owner and drops its streams. When it returns no byte moves over them any more.
  void drop(Owner& owner);

 private:
  struct Listener {
    Listener(Listening where, Loop& loop) : at(std::move(where)), pause(loop) {}
    Listening at;
    Loop::Timer pause;
    std::unique_ptr<Loop::Watch> watch;
  };
  // A connection that has not sent its whole greeting yet.
  struct Pending {
    Pending(Connection accepted, Loop& loop) : connection(std::move(accepted)), late(loop) {}
    Connection connection;
    Loop::Timer late;
    char greeting[Greeting::kSize];
    size_t size = 0;
    std::unique_ptr<Loop::Watch> watch;
  };
  struct Session {
    Owner* owner;
    std::unique_ptr<TargetStream> stream;
    std::unique_ptr<Loop::Watch> watch;
  };
  using Sessions = std::list<Session>;

  Service(Exports& exports, const TcpOptions& options)
      : exports_(exports),
        timeout_(options.connectTimeout),
        ports_(options.ports),
        recent_(sessions_.end()) {}

  // These on the service thread.
  Result<uint16_t> listenAt(const std::string& address);
  void accept(Listener& listener);
  void readGreeting(std::list<Pending>::iterator pending);
  void startSession(Connection connection, const char* greeting);
  // With `sendIt` this side has dialled, and greets first.
  void addSession(Owner& owner, Connection connection, std::string greeting, bool sendIt);
  // Of a link that is there, or was there; empty for any other.
  std::string credentialsOf(const std::string& token) const;
  // Answers whether the peer's bytes moved.
  bool step(Sessions::iterator session, uint32_t events);
  std::unique_ptr<Loop::Watch> watch(int fd, uint32_t events, std::function<void(uint32_t)> ready);

  Exports& exports_;
  const std::chrono::milliseconds timeout_;
  const PortRange ports_;
  TransportCounters* counters_ = nullptr;
  std::shared_ptr<TlsContext> tls_;            // null: streams are plain
  std::shared_ptr<Loop> loop_;                 // whose thread owns everything below
  std::map<std::string, Listener> listeners_;  // by address
  std::map<std::string, Owner*> owners_;       // by token
  // The links that were dropped last, by token, with their credentials. A connection of theirs that
  // comes late is told that nothing of it is applied: its origin need not wait for the lease.
  std::deque<std::pair<std::string, std::string>> dropped_;
  std::list<Pending> pending_;  // the oldest first
  std::unique_ptr<TargetStream::Buffer> spare_;
  Sessions sessions_;
  Sessions::iterator recent_;  // asked last
};

}  // namespace hmc::tcp
