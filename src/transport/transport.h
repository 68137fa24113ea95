#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/interface.h"
#include "base/lease.h"
#include "hmc/access.h"
#include "hmc/block.h"
#include "hmc/deadline.h"
#include "hmc/result.h"
#include "memory/even_list.h"
#include "memory/region.h"
#include "transport/completion.h"
#include "transport/counters.h"
#include "transport/use_gate.h"

namespace hmc {

// SEAM 2: a way to move bytes between two processes. Bytes cross this seam, sockets do not: a
// transport hands out and takes in opaque addresses and keys, and control/ carries them. There are
// no client and server classes. docs/adding-a-transport.md explains the contract, which
// tests/contract/transport_contract.h holds for every implementation:
//
//  1. Done means arrived: a finished put is visible in the target's memory, a finished get in ours.
//  2. One-sided: the target's user threads take no part.
//  3. No order between operations.
//  4. post() takes a span and says how many it accepted; back-pressure is a number, not an error.
//  5. Failure is per operation. A dead peer finishes everything pending with `disconnected`.
//  6. A closed Link is fenced: once its operations have finished, no byte of them moves any more,
//  on
//     either side.
//  7. Bounds are checked without overflow, at both ends where software runs at both.

// Who has the key of registered memory.
enum class Exposure : uint8_t {
  ours,   // nobody: transfers of our own start from it
  peers,  // peers, who may map what shares pages with it, too
  exact,  // one peer, who reaches these bytes alone, by a key that no other registration has
};

// Memory made reachable through one transport, until it is destroyed; then nothing reaches it that
// software can stop. `key` is what a peer's Link imports.
class Registration : public Interface {
 public:
  Registration(Region what, Access allowed) : region(what), access(allowed) {}

  virtual const std::string& key() const = 0;

  const Region region;
  const Access access;
};

// Host memory of a peer that lies in our own address space: a copy is a transfer, unless `*closed`,
// which the Link sets. Whoever is in mid-copy then ends by itself, and looks again: its bytes may
// have gone to other pages. From kUnwatched bytes on the lease must be held, too.
struct Mapped {
  static constexpr size_t kUnwatched = size_t{64} << 10;

  char* data = nullptr;  // none when it does not lie there
  const std::atomic<bool>* closed = nullptr;
  const Lease* lease = nullptr;
};

// The path that a Link takes to a peer's memory.
struct PathTaken {
  std::string name;           // one of Facts::paths: "mapped"; empty where there is only one
  std::string slowerBecause;  // why, with the fix; empty when there was no faster path
  bool hostOnly = false;      // moves our host memory alone, whatever Facts::local says
  bool inProcess = false;     // lies in this process, too: the peer takes no part in transfers
};

// A peer's Registration as one Link sees it. Must not outlive the Link.
class RemoteMemory : public Interface {
 public:
  RemoteMemory(uint64_t bytes, Access allowed, Mapped here = {}, PathTaken taken = {})
      : size(bytes),
        access(allowed),
        mapped(here),
        hostOnly(taken.hostOnly),
        inProcess(taken.inProcess),
        taken_(std::make_unique<PathTaken>(std::move(taken))) {}
  ~RemoteMemory() override { gate_->forget(); }

  const std::string& path() const { return taken_->name; }
  const std::string& slowerBecause() const { return taken_->slowerBecause; }

  // Whoever posts operations on it is inside meanwhile: see OpPoster.
  UseGate& gate() const { return *gate_; }
  // For operations that go on after post(): their memory may be gone when they end.
  const std::shared_ptr<UseGate>& sharedGate() const { return gate_; }
  // Its owner takes it back: nobody gets through the gate any more. When the last one has left,
  // it is unmapped and `released` told, by that thread or from here. Does not block.
  void revoke(std::function<void(const Status&)> released) {
    gate_->close([this, then = std::move(released)] { then(unmap()); });
  }

  const uint64_t size;
  const Access access;
  const Mapped mapped;
  const bool hostOnly;  // PathTaken's, as the next one
  const bool inProcess;

 private:
  // From now on `mapped` points to pages of this process, also for who is in the middle of a copy.
  virtual Status unmap() { return Status(); }

  // Apart from the rest, which every put reads.
  const std::unique_ptr<const PathTaken> taken_;
  const std::shared_ptr<UseGate> gate_ = std::make_shared<UseGate>();
};

enum class OpKind : uint8_t { put, get };

// One contiguous piece. `local` lies inside the registration's region; the caller has checked the
// local range and the remote range against RemoteMemory::size, and size is 1..Facts::largest.
struct Op {
  OpKind kind;
  void* local;
  const Registration* registration;
  const RemoteMemory* remote;
  uint64_t remoteOffset;
  size_t size;
  Completion* completion;
};

// Blocks of two memories as one operation. What Op says of its piece holds for every block, which
// may also be empty.
struct ListOp {
  OpKind kind;
  Region local;  // the blocks' local offsets count from its beginning
  const Registration* registration;
  const RemoteMemory* remote;
  std::span<const Block> blocks;
  uint64_t bytes;  // of all blocks
  Completion* completion;
  // The same blocks, where all are of one size. Who takes the operation may take it.
  EvenList* even = nullptr;
};

// The data path to one peer. Safe from any thread. Destroying it does what close() does and waits
// for the fence: at most the lease's length. No other call is under way then, unless it is a post()
// all of whose operations have finished.
class Link : public Interface {
 public:
  // What the peer's Link needs for connect().
  virtual const std::string& address() const = 0;

  // Takes the peer's address; the initiator does so last. Does not block: until the path is up,
  // post() accepts nothing or queues; if it cannot come up, operations fail with the reason.
  virtual Status connect(std::string_view peerAddress) = 0;

  // May talk to the peer's host, but not to its control plane. Where it shows only then whether the
  // path works, it waits for that, so that the caller can still take another transport.
  //
  // With a `place`, the memory is mapped there or nowhere: the place lies in a range that the
  // memory's backend has reserved. `unsupported` where this transport does not map that memory.
  virtual Result<std::unique_ptr<RemoteMemory>> importKey(std::string_view key, Deadline deadline,
                                                          void* place) = 0;

  // Starts operations, in any order, possibly finishing them before it returns. Answers how many of
  // them, from the front, were accepted; fewer than all means: call Transport::progress() and post
  // the rest again. An accepted operation finishes exactly once, through its completion. On a
  // closed or failed link every operation is accepted and fails.
  virtual size_t post(std::span<const Op> ops) = 0;
  // The same for a list, which it has read when it returns. False when this transport does not take
  // lists, or none between these two memories: then the blocks are posted one by one.
  virtual bool postList(const ListOp&) { return false; }

  // Starts the end, without blocking: nothing new starts, and everything pending finishes with
  // `why` (a failure) as soon as no byte of it can move any more, at the latest when the lease is
  // over. Calls after the first change nothing.
  virtual void close(const Status& why) = 0;
};

struct LinkOptions {
  // The side that dialled the control channel; it also dials whatever the transport dials.
  bool initiator = false;
  // The local address of the control channel, "127.0.0.1" for a unix socket. Where the peer can
  // reach us, and no more public than the listener that it came through.
  std::string localHost = "127.0.0.1";
  // Where the control channel reached the other end: the initiator dials there, whatever address
  // the peer may have of its own.
  std::string peerHost = "127.0.0.1";
  // Never null. Kept alive by heartbeats on the control channel. Where software serves the target
  // side it applies nothing once this has expired.
  std::shared_ptr<Lease> lease;
  // Secret bytes that this link's two ends alone know, from the handshake of the control channel. A
  // transport that opens connections of its own proves with them who it is.
  std::string credentials;
  // Called once, when this end gives the link up and before it counts the lease's time: tells the
  // peer. From any thread, also with the transport's locks held.
  std::function<void()> onEnd = [] {};
};

// Destroyed after all its Links and Registrations.
class Transport : public Interface {
 public:
  // One path to memory, and what it typically costs on the hosts of today: for
  // predictions that are right within a factor of a few.
  struct Path {
    std::string name;  // RemoteMemory::path()
    double latencyNs = 0;
    double bytesPerNs = 1;  // as much as GB/s
  };
  struct Facts {
    std::string name;               // "ipc", "tcp"
    std::string domain;             // two processes with the same domain can reach each other
    std::vector<DeviceKind> local;  // kinds of memory that post() can read and write on our side
    size_t largest;                 // most bytes in one Op
    std::vector<Path> paths;        // fastest first
    // Using it changes the process (a library with signal handlers, hooks or threads of its own):
    // memory is registered and links are opened only when somebody asks for it by name.
    bool onDemand = false;
    size_t batch = 64;  // how many operations post() is best given at once, at the most
  };

  explicit Transport(Facts facts) : facts_(std::move(facts)) {}

  const Facts& facts() const { return facts_; }
  // The engine counts operations, bytes and stalls; the transport itself counts retries.
  TransportCounters& counters() { return counters_; }

  // `unsupported` when this transport cannot reach memory of that kind.
  virtual Result<std::unique_ptr<Registration>> registerRegion(const Region& region, Access access,
                                                               Exposure exposure) = 0;
  Result<std::unique_ptr<Registration>> registerRegion(const Region& region, Access access) {
    return registerRegion(region, access, Exposure::peers);
  }
  virtual Result<std::unique_ptr<Link>> openLink(const LinkOptions& options) = 0;

  // Moves our own operations along: true when at least one finished. When nothing can move it spins
  // briefly, then sleeps until something can or `until` passes; it may return early. One thread
  // calls it at a time. What peers ask of us does not need it.
  virtual bool progress(Deadline until) = 0;
  // Lets the progress() that is under way return soon, or if there is none, the next one. From any
  // thread, except where an operation is just being finished.
  virtual void wake() = 0;

 private:
  const Facts facts_;
  TransportCounters counters_;
};

}  // namespace hmc
