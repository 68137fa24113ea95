#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <variant>

#include "transport/tcp/socket.h"
#include "transport/tcp/target.h"

namespace hmc::tcp {

// The thread that serves what peers ask of us, and the listeners through which they come. It never
// blocks on a peer and sleeps when there is nothing to do. Safe from any thread.
class Service {
 public:
  // Who waits to be dialled.
  class Host {
   public:
    virtual ~Host() = default;
    // A connection over which we ask. Called on the service thread, with its mutex held.
    virtual void arrived(Fd fd) = 0;
    virtual const std::shared_ptr<Lease>& lease() const = 0;
  };

  static Result<std::unique_ptr<Service>> create(Exports& exports,
                                                 std::chrono::milliseconds patience);
  ~Service();

  // The port at which peers reach us on that address; listens there from the first call on.
  Result<uint16_t> open(const std::string& address);
  // From now on a visitor with this token comes for `host`, until drop(host).
  void expect(const std::string& token, Host& host);
  // Serves a stream that belongs to `host`; what it says first is the greeting.
  void serve(Host& host, Fd fd, std::string greeting);
  // Forgets the host and drops its streams. When it returns no byte moves over them any more.
  void drop(Host& host);

 private:
  struct Listener {
    Fd fd;
    uint16_t port;
  };
  // Has not said yet who it is, and gets no more than these bytes until it has.
  struct Visitor {
    Fd fd;
    char greeting[Greeting::kSize];
    size_t size;
    Deadline deadline;
  };
  struct Guest {
    std::unique_ptr<TargetStream> stream;
    Host* host;
    bool sending;  // which readiness we wait for
  };
  using Entry = std::variant<Listener, Visitor, Guest>;

  Service(Exports& exports, std::chrono::milliseconds patience, Fd epoll, Fd wake);
  void run(const std::stop_token& stop);
  bool spinning(Deadline::Clock::time_point lastTraffic) const;
  int patienceLeftMs();
  void dropLateVisitors();

  // These with mutex_ held. handle() answers whether a peer's bytes moved.
  bool handle(uint64_t id, uint32_t events);
  void admit(Listener& listener);
  void shedLoad(Listener& listener);
  void greet(uint64_t id, Visitor& visitor);
  uint64_t add(int fd, uint32_t events, Entry entry);
  void addGuest(Host& host, Fd fd, std::string greeting);
  bool step(uint64_t id, Guest& guest, uint32_t events);
  bool lookAgain();

  Exports& exports_;
  const std::chrono::milliseconds patience_;
  const Fd epoll_;
  const Fd wake_;
  // Held while one entry is handled, and guards everything below.
  std::mutex mutex_;
  uint64_t nextId_ = 1;  // 0 is wake_
  uint64_t recent_ = 0;  // the guest that asked last
  std::map<uint64_t, Entry> entries_;
  std::map<uint64_t, Deadline> visitors_;      // the oldest first
  std::map<std::string, uint64_t> listeners_;  // by address
  std::map<std::string, Host*> hosts_;         // by token
  Fd spare_;  // to be able to turn away who comes when all are in use
  std::jthread thread_;
};

}  // namespace hmc::tcp
