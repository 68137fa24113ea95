#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "transport/tcp/connection.h"
#include "transport/tcp/local_peer.h"
#include "transport/tcp/progress.h"
#include "transport/tcp/wire.h"
#include "transport/transport.h"

namespace hmc::tcp {

struct TcpRemote : RemoteMemory {
  TcpRemote(uint64_t id, uint64_t bytes, Access allowed, std::string way)
      : RemoteMemory(bytes, allowed, {}, {std::move(way), ""}), region(id) {}
  const uint64_t region;
};

// One connection over which we ask. Operations wait in a ring: the oldest is the next to be
// answered, because a target answers in order. Nothing here blocks, and nothing is allocated per
// operation. Safe from any thread; only the thread in progress() calls pump() and expire().
class OriginStream {
 public:
  using Clock = Deadline::Clock;

  // `fence` is how long a target that does not answer may still act on what we sent.
  OriginStream(std::chrono::milliseconds fence, TransportCounters& counters);

  // The first bytes that we send over a connection, the last ones that the target does, its
  // FdExchange, and whether what moves has checksums.
  struct Ends {
    std::string greeting;
    std::string farewell;
    std::string exchange;
    bool checked = false;
  };
  // The connection, there or on its way. From now on
  // `progress` watches it, as stream `index` of link `number`. The link needs its first one; any
  // other takes no operation before it is up, and is dropped if it cannot be.
  Status attach(Connection connection, std::string peer, Ends ends, Progress& progress,
                uint64_t number, size_t index);
  bool attached() const { return attached_.load(std::memory_order_acquire); }
  // Connected and greeted.
  bool up() const { return up_.load(std::memory_order_acquire); }
  // enqueue() may take operations.
  bool usable() const { return attached() && (needed_.load(std::memory_order_relaxed) || up()); }
  // Did not come up in time: drops the connection, unless the link needs it.
  void dropIfNotUp();
  // The connection broke or was closed: nothing new starts, although what was sent may still wait
  // for its fence.
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  Status why() const;
  // Bytes that wait for their answer, with a bit for each operation.
  uint64_t load() const { return load_.load(std::memory_order_relaxed); }

  // Takes the operation for the next flush(); false when the window is full or there is no
  // connection that can take it. On an ended stream it fails at once.
  bool enqueue(const Op& op);
  // Sends what the socket takes. `more`: another flush or finish() follows at once, so the kernel
  // need not send off a packet that is not full.
  void flush(bool more = false);
  void finish();
  // Sends and receives what the socket has; true when an operation ended. `over`: read to the end,
  // nobody will be told again that it is there.
  bool pump(bool over);

  // Ends the stream. What the target cannot have seen fails now, and so do gets, whose bytes are
  // not written from here on; a put that may still be applied fails when the target has said
  // farewell, its process is gone, or the fence's time is over. An end or a reset of the connection
  // proves nothing: others can send them.
  void close(const Status& why);
  // When expire() has something to do; max() when there is nothing.
  Clock::time_point fenceAt() const;
  bool expire();
  // The socket for poll(2), -1 when there is none.
  int fd() const;

 private:
  static constexpr size_t kWindow = 256;
  static constexpr size_t kReadAhead = 4096;
  static constexpr uint64_t kWindowBytes = uint64_t{8} << 20;
  static constexpr uint64_t kOpCost = 256;  // what an operation weighs besides its bytes
  struct Slot {
    Op op;           // no completion: already failed
    Status failure;  // found at this side: how it ends, whatever the target answers
    size_t follows;  // bytes behind the header, without their trailer
    char header[Request::kSize];
  };
  using Trailer = std::array<char, kTrailerSize>;

  // All of these with mutex_ held. Those in origin_streaming.cc know what is on the wire.
  Slot& slot(uint64_t number) { return slots_[number % kWindow]; }
  Status prepare(Slot& s, uint64_t number);
  size_t wireSize(const Slot& s) const;
  void sendAll(bool more = false);
  size_t gather(iovec* pieces, size_t most, bool& more);
  void sent(size_t count);
  void addToChecksum(const Slot& s, size_t from, size_t to);
  bool blameUnreadable();
  void receiveAll(bool over);
  void discardPayload();
  void place(const char* bytes, size_t size);
  Status digest();
  size_t digestOne(const char* bytes, size_t have, Status& broken);
  size_t digestRefusal(const Reply& reply, const char* bytes, size_t have, Status& broken);
  Status answer(const Reply& reply);
  void checkPayload(uint32_t expected);
  void discardAll();
  void hear(const char* bytes, size_t size);
  bool isFenced() const;
  void setUp();
  void endFirst(const Status& status);
  bool mayDrop() const { return fd_ && !needed_ && !up_; }
  void drop();
  void broken(const std::string& what, int errnum);
  void end(const Status& why, bool fenced);
  void failRest();
  void fail(Op& op);

  const std::chrono::milliseconds fence_;
  TransportCounters& counters_;
  std::atomic<bool> attached_{false};
  std::atomic<bool> needed_{true};
  std::atomic<bool> up_{false};
  std::atomic<bool> ended_{false};
  std::atomic<uint64_t> load_{0};

  mutable std::mutex mutex_;  // guards everything below
  Connection fd_;
  std::string peer_ = "the peer";
  std::string greeting_;  // what is left of it to send
  std::string farewell_;  // what the target says last
  std::string last_;      // the last bytes that came, as many as that
  std::string exchange_;  // the target's
  bool checked_ = false;  // what moves has checksums
  LocalPeer target_;      // its process, where it is on this host
  Status why_;
  Clock::time_point fenceAt_ = Clock::time_point::max();
  Clock::time_point lookAt_ = Clock::time_point::max();  // whether target_ is gone

  std::vector<Slot> slots_;        // none before the first operation
  uint64_t first_ = 0;             // the oldest that has no answer
  uint64_t next_ = 0;              // the first that is not sent completely
  uint64_t end_ = 0;               // where the next one goes
  size_t sent_ = 0;                // bytes of next_ that are sent
  std::vector<Trailer> trailers_;  // one for each slot, where there are checksums
  uint32_t sum_ = 0;               // of next_'s bytes that are sent, where it is not known before
  uint64_t finished_ = 0;
  bool corked_ = false;  // the kernel waits for more

  std::vector<char> in_{std::vector<char>(Reply::kSize)};  // more from the first operation on
  size_t inSize_ = 0;        // bytes in in_ that digest() has not used
  char* payload_ = nullptr;  // where the next bytes of a get go; null: nowhere
  size_t payloadLeft_ = 0;
  uint32_t payloadSum_ = 0;
  bool trailerDue_ = false;   // behind the first get's bytes
  bool payloadCame_ = false;  // the first get's bytes are all here, or on their way
};

}  // namespace hmc::tcp
