#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "base/event_set.h"
#include "hmc/deadline.h"

namespace hmc::tcp {

// Where the thread in Transport::progress() waits for the answers of all links. One thread runs it
// at a time; the rest is safe from any thread.
class Progress {
 public:
  using Clock = Deadline::Clock;

  // A link whose streams are watched.
  class Watched {
   public:
    virtual ~Watched() = default;
    // The socket of that stream is ready, or `over`: the last there is to hear of it. True when an
    // operation ended.
    virtual bool ready(size_t stream, bool over) = 0;
    // When expire() has something to do.
    virtual Clock::time_point timer() const = 0;
    virtual bool expire() = 0;
  };

  static Result<std::unique_ptr<Progress>> create();

  // The number under which the link's sockets are watched.
  uint64_t add(Watched& link);
  // When it returns, run() does not use the link any more.
  void remove(uint64_t number);
  // Edge-triggered: whoever is told must use up what the socket has.
  Status watch(int fd, uint64_t number, size_t stream);

  bool run(Deadline until);
  // Lets run() look again at its timers, and return.
  void wake() { events_.wake(); }

 private:
  explicit Progress(EventSet events) : events_(std::move(events)) {}
  int sleepMs(Deadline until);
  bool expire();
  bool tell(uint64_t tag, bool over);

  EventSet events_;
  std::mutex mutex_;  // guards what follows; held while a link is told
  uint64_t nextNumber_ = 1;
  std::map<uint64_t, Watched*> links_;
  uint64_t recent_ = 0;  // tag of the stream that was heard last; 0 for none
};

}  // namespace hmc::tcp
