#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// A clock and TCP sockets that a test moves by hand, in the place of libc's: clock_gettime(),
// sendmsg(), recvmsg() and their kin. So code of src/ runs as it is, and nothing happens that the
// test has not chosen. One thread.
namespace hmc::model {

// One direction of a connection.
struct Wire {
  std::string sent;     // in the sender's socket, or on its way
  std::string arrived;  // in the receiver's socket
  enum class End { none, fin, reset };
  End end = End::none;  // what follows `sent`
  bool finSeen = false;
  bool resetSeen = false;
  bool receiverGone = false;
};

struct Socket {
  Wire* out = nullptr;
  Wire* in = nullptr;
  bool lingers = true;  // false: close() discards what was not delivered, and resets
  bool closed = false;
  // The process may be stopped in these calls, for as long as this takes.
  std::function<void()> sending = nullptr;
  std::function<void()> receiving = nullptr;
};

class SimulatedHost {
 public:
  // What a socket holds that the peer's has not taken.
  static constexpr size_t kSendBuffer = 96;
  // Bytes that are delivered at once: a request's header and half of its put.
  static constexpr size_t kPacket = 96;

  // From now on this process has its clock and sockets.
  SimulatedHost();
  ~SimulatedHost();
  SimulatedHost(const SimulatedHost&) = delete;
  SimulatedHost& operator=(const SimulatedHost&) = delete;

  // A descriptor for that end of a connection. `socket` must outlive its use.
  int open(Socket& socket);
  // The next packet of that direction, or its end.
  static void deliver(Wire& wire);
  static bool hasMore(const Wire& wire) {
    return !wire.receiverGone &&
           (!wire.sent.empty() || (wire.end == Wire::End::fin && !wire.finSeen) ||
            (wire.end == Wire::End::reset && !wire.resetSeen));
  }

  // No two readings of the clock are the same.
  int64_t now() { return ++now_; }
  int64_t look() const { return now_; }
  void advanceTo(int64_t time) { now_ = time; }

  Socket* find(int fd);

 private:
  int64_t now_ = int64_t{1} << 40;
  std::vector<Socket*> sockets_;
};

}  // namespace hmc::model
