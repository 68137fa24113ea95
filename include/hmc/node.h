#pragma once

// The modern API. A Node registers memory, opens listeners, connects to peers, opens their regions
// by name and moves bytes between the two with one-sided put and get.
//
// All classes are cheap handles, safe from any thread; copies share what they stand for. A call
// that can wait takes a timeout; when it passes, the call has undone what it started. Destroying
// the Node ends everything: handles that are left answer with an error.

#include "hmc/cpp17.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hmc/access.h"
#include "hmc/block.h"
#include "hmc/deadline.h"
#include "hmc/device.h"
#include "hmc/export.h"
#include "hmc/grant.h"
#include "hmc/node_options.h"
#include "hmc/region_info.h"
#include "hmc/reports.h"
#include "hmc/result.h"

namespace hmc {

class NodeImpl;
class PeerState;
class LocalMemory;
class RemoteMapping;
class TransferState;
class CompletionList;
class ServedCall;

inline constexpr Timeout kDefaultTimeout = std::chrono::seconds(30);

/// Memory of this process that peers can reach and that transfers start from, until the last handle
/// is gone; dropping it revokes the memory, which takes the lease at most.
class HMC_API LocalRegion {
 public:
  void* data() const;               ///< Where it begins, on its device.
  size_t size() const;              ///< In bytes.
  Device device() const;            ///< Where it lies.
  const std::string& name() const;  ///< The name that peers open it by.

  /// Takes the memory back from peers: when this answers ok, none of them reads or writes it any
  /// more, over any transport. A peer that does not confirm it in time is disconnected, and the
  /// sentence names it (deadlineExceeded): what it had begun before may still arrive if its process
  /// is only stopped. The name is free again; transfers that start here go on. What was granted
  /// ends, too.
  Status revoke(Timeout timeout = kDefaultTimeout) const;

  /// For Peer::open() at a peer, which then reaches that range alone, that way, until then. Send it
  /// the bytes by any way that strangers cannot read. Each end of it takes the memory back as
  /// revoke() does: the grant's, this region's, and that of the last handle of the Node.
  [[nodiscard]] Result<Grant> grant(const GrantOptions& options = {}) const;
  /// Ends that grant, which this region gave, and all that were made of it. The rest stays.
  Status revoke(const Grant& grant, Timeout timeout = kDefaultTimeout) const;

 private:
  friend class Node;
  friend class RemoteRegion;
  explicit LocalRegion(std::shared_ptr<LocalMemory> memory) : memory_(std::move(memory)) {}
  std::shared_ptr<LocalMemory> memory_;
};

/// One transfer or one batch on its way. Dropping the handle does not stop it.
class HMC_API Ticket {
 public:
  /// Its outcome; deadlineExceeded when it is still on its way, and then it goes on.
  Status wait(Timeout timeout = kDefaultTimeout);
  bool done();  ///< Whether wait() would return at once.
  /// The same without moving it along: done() may talk to the transport.
  bool over() const;
  /// Stops it. When this returns no byte of it moves any more, here or at the peer. That takes the
  /// peer's answer, or twice the lease: one for the answer, one for the peer to give up. Its
  /// outcome is then `cancelled`, unless it was done before.
  Status cancel();
  /// The transport that carries it.
  const std::string& transport() const;
  /// The same in the words of RemoteRegion::path(): "ipc (mapped)".
  std::string path() const;

 private:
  friend class CompletionQueue;
  friend class RemoteMapping;
  Ticket(std::shared_ptr<RemoteMapping> mapping, std::shared_ptr<TransferState> state)
      : mapping_(std::move(mapping)), state_(std::move(state)) {}
  std::shared_ptr<RemoteMapping> mapping_;
  std::shared_ptr<TransferState> state_;  ///< null for one that was done when it was started
};

/// Tells an event loop which tickets are done, through one descriptor. A ticket that is watched
/// moves along without anybody waiting for it, in a thread that uses no time while nothing is
/// watched; waiting for it and cancelling it work as ever. Destroying this ends the watching, not
/// the transfers. Safe from any thread.
class HMC_API CompletionQueue {
 public:
  [[nodiscard]] static Result<CompletionQueue> create();  ///< One that watches nothing yet.
  ~CompletionQueue();                                     ///< Ends the watching, not the transfers.
  CompletionQueue(CompletionQueue&&) noexcept;
  CompletionQueue& operator=(CompletionQueue&&) noexcept;

  /// For poll(2) and its kin: readable while take() has an answer. Stays ours.
  int fd() const;
  /// take() answers `id` once when the ticket is done, however it ends.
  Status watch(const Ticket& ticket, uint64_t id);
  /// The ids of the tickets that became done since the last call; Ticket::wait() has their outcome.
  /// Does not wait.
  std::vector<uint64_t> take();

 private:
  explicit CompletionQueue(std::unique_ptr<CompletionList> list);
  std::unique_ptr<CompletionList> list_;
};

/// The streams that a transfer is ordered with, of the device that the local memory lies on:
/// cudaStream_t, hipStream_t and their kin. Null is none; CUDA's default streams are 1 (legacy) and
/// 2 (per thread), as cuda.h has them.
struct StreamOrder {
  /// The transfer touches local memory when what was enqueued there before has run.
  void* after = nullptr;
  /// What is enqueued there afterwards runs when the transfer has ended. It goes on after a
  /// failure, too: the Ticket has the outcome. `unsupported` where such streams cannot wait for the
  /// host.
  void* before = nullptr;
};

/// A peer's LocalRegion, reachable over one transport, or over several where one is quicker for
/// small transfers and another for large ones. A transfer whose path fails says so; from then on
/// the other paths take its place. Fails with `disconnected` once none is left or the peer is gone:
/// connect again and open again.
class HMC_API RemoteRegion {
 public:
  size_t size() const;    ///< In bytes.
  Device device() const;  ///< Where it lies.
  Access access() const;  ///< What we may do with it.
  /// Of the path that the smallest puts take.
  const std::string& transport() const;
  /// The transport and how it reaches this memory: "ipc (mapped)", "ipc (process_vm)", "ipc
  /// (ring)", "tcp (2 streams)", "tcp (tls, 2 streams)"; of several each with its sizes: "verbs up
  /// to 4096 bytes, tcp (2 streams)".
  std::string path() const;

  /// Whether the peer's memory is mapped here: a transfer is a copy then, and waits for nobody.
  bool mapped() const;
  /// Where it lies in this process if it is mapped and on the host, else null. Valid as long as
  /// this handle or a copy of it lives. Once the owner has revoked the region, or is gone, the
  /// bytes there are no longer the peer's; reading and writing them does no harm.
  void* data() const;

  /// Whether a processor or device of this process would do a transfer from that memory alone, and
  /// at once: no peer takes part, and `stream`, if it is one, has nothing left to do.
  bool waitsForNobody(const LocalRegion& local, void* stream = nullptr) const;

  /// Returns when the bytes are visible at the other side (put) or here (get). A timeout cancels.
  Status put(const LocalRegion& local, size_t localOffset, size_t remoteOffset, size_t size,
             Timeout timeout = kDefaultTimeout) const;
  /// As put(), the other way.
  Status get(const LocalRegion& local, size_t localOffset, size_t remoteOffset, size_t size,
             Timeout timeout = kDefaultTimeout) const;

  /// The same when it is nothing but a copy of at most a megabyte into mapped memory. False, and
  /// nothing done, when it is more than that or an error. Memory of the host need not be
  /// registered.
  bool putAtOnce(const LocalRegion& local, size_t localOffset, size_t remoteOffset,
                 size_t size) const;
  /// As putAtOnce(), the other way.
  bool getAtOnce(const LocalRegion& local, size_t localOffset, size_t remoteOffset,
                 size_t size) const;
  /// From memory that need not be registered.
  bool putAtOnce(const void* local, size_t remoteOffset, size_t size) const;
  /// Into memory that need not be registered.
  bool getAtOnce(void* local, size_t remoteOffset, size_t size) const;

  /// Change eight bytes of the peer's host memory at once, and answer what was there before: add
  /// (modulo 2^64); store `desired` where `expected` is there. They begin at a multiple of eight
  /// and hold a number as the owner's processor has it. Changes by any peer over any transport, and
  /// the owner's own std::atomic, never lose one another. Puts that were done before are there by
  /// then. After deadlineExceeded or disconnected it may have happened or not.
  Result<uint64_t> fetchAdd(size_t remoteOffset, uint64_t value,
                            Timeout timeout = kDefaultTimeout) const;
  /// As fetchAdd(), with `desired` where `expected` is there.
  Result<uint64_t> compareSwap(size_t remoteOffset, uint64_t expected, uint64_t desired,
                               Timeout timeout = kDefaultTimeout) const;

  /// Start and return. Waiting on the Ticket is what moves it along, or a CompletionQueue that
  /// watches it. The first 16,384 blocks of a list are checked before anything moves; where a later
  /// one does not fit, the Ticket says so, and blocks before it may have moved.
  [[nodiscard]] Result<Ticket> startPut(const LocalRegion& local, const std::vector<Block>& blocks,
                                        const StreamOrder& order = {}) const;
  /// As startPut(), the other way.
  [[nodiscard]] Result<Ticket> startGet(const LocalRegion& local, const std::vector<Block>& blocks,
                                        const StreamOrder& order = {}) const;
  /// Rows that lie a stride apart.
  [[nodiscard]] Result<Ticket> startPut(const LocalRegion& local, const Strided& shape,
                                        const StreamOrder& order = {}) const;
  /// Rows that lie a stride apart.
  [[nodiscard]] Result<Ticket> startGet(const LocalRegion& local, const Strided& shape,
                                        const StreamOrder& order = {}) const;

 private:
  friend class Peer;
  explicit RemoteRegion(std::shared_ptr<RemoteMapping> mapping) : mapping_(std::move(mapping)) {}
  std::shared_ptr<RemoteMapping> mapping_;
};

/// A Node that this one is connected to.
class HMC_API Peer {
 public:
  const std::string& name() const;  ///< The name that peers open it by.
  /// Random, new for every Node: a peer that restarts has another.
  const std::string& id() const;
  /// Ok while connected, then why it is no longer.
  Status status() const;

  /// It has proven that it knows our secret, or is of our user on this host. Else it may be
  /// anybody.
  bool proven() const;

  /// A region that the peer registered under that name.
  [[nodiscard]] Result<RemoteRegion> open(const std::string& name,
                                          Timeout timeout = kDefaultTimeout) const;
  /// What a grant of the peer's is for, whoever we have it from.
  [[nodiscard]] Result<RemoteRegion> open(const Grant& grant,
                                          Timeout timeout = kDefaultTimeout) const;

  /// What the peer has registered under names, in their order. `permissionDenied` where it opens
  /// regions by grants alone, or does not know who we are.
  Result<std::vector<RegionInfo>> regions(Timeout timeout = kDefaultTimeout) const;
  /// The same of one region that it would let us open.
  Result<RegionInfo> describe(const std::string& name, Timeout timeout = kDefaultTimeout) const;

  /// Sends bytes that arrive in the peer's Node::nextNote(), after the data of every put to it that
  /// was started or done before.
  Status notify(const std::string& bytes, Timeout timeout = kDefaultTimeout) const;

  /// Asks the peer's user, who takes it from Node::nextCall(): sends bytes under a name, 16 MiB at
  /// most, and returns the answer. The data of every put to it that was done before is there then.
  /// A timeout does not take the call back.
  Result<std::string> call(const std::string& name, const std::string& bytes,
                           Timeout timeout = kDefaultTimeout) const;

  /// Every transport, best first: is it used for this peer, and why, or why not.
  std::vector<PathReport> explain() const;
  /// The same for memory of ours on that device, with the times of a put of `size` bytes.
  std::vector<PathReport> explain(Device local, size_t size) const;
  /// Asks the peer what it is. `unsupported` when it is too old to answer.
  Result<PeerFacts> probe(Timeout timeout = kDefaultTimeout) const;
  void close();  ///< Disconnects.

 private:
  friend class Node;
  Peer(std::shared_ptr<NodeImpl> node, std::shared_ptr<PeerState> state)
      : node_(std::move(node)), state_(std::move(state)) {}
  std::shared_ptr<NodeImpl> node_;
  std::shared_ptr<PeerState> state_;
};

/// What a peer sent by Peer::notify().
struct Note {
  Peer from;
  std::string bytes;
};

/// A peer's call, which waits for an answer. Copies are the same call. When the last one goes
/// without an answer, the caller gets an error that says so.
class HMC_API Call {
 public:
  const Peer& from() const { return from_; }  ///< Who asks.
  const std::string& name() const;            ///< The name that peers open it by.
  const std::string& bytes() const;           ///< What it sent.
  /// What Peer::call() returns over there, 16 MiB at most. Once.
  Status answer(const std::string& bytes) const;
  /// Peer::call() fails with that sentence.
  Status refuse(const std::string& why) const;

 private:
  friend class Node;
  Call(Peer from, std::shared_ptr<ServedCall> call)
      : from_(std::move(from)), call_(std::move(call)) {}
  Peer from_;
  std::shared_ptr<ServedCall> call_;
};

/// A peer came or went.
struct PeerEvent {
  /// Which of the two.
  enum class Kind { joined, left };
  Peer peer;
  Kind kind;
  Status reason;  ///< why it left
};

/// One participant: registers memory, listens, connects, and moves bytes.
class HMC_API Node {
 public:
  /// Opens what its transports need; listens nowhere yet.
  [[nodiscard]] static Result<Node> create(const NodeOptions& options = {});
  ~Node();  ///< Ends everything: handles that are left answer with an error.
  Node(Node&&) noexcept;
  Node& operator=(Node&&) noexcept;

  const std::string& name() const;  ///< The name that peers open it by.

  /// The transports of this process, best first, and for each that cannot run here why.
  std::vector<PathReport> transports() const;
  /// What each of those that can run did, as the origin of transfers. Counting costs nothing, and
  /// the numbers of one moment need not fit together.
  std::vector<TransportCounts> counters() const;

  /// Opens a listener: "tcp://127.0.0.1:0", "tcp://[::1]:5001", "unix:///run/me.sock". Answers the
  /// address for peers, with the port that was picked: for "tcp://0.0.0.0:0" that of the interface
  /// that has the default route, or what NodeOptions::advertise says. The name of a host is looked
  /// up for 10 s at most.
  Result<std::string> listen(const std::string& address);

  /// The memory stays the caller's and must outlive the handle and the transfers that use it;
  /// `owner`, if there is one, is let go when it may go, by any thread. Names are unique in a Node;
  /// memory without one serves transfers that start here, and no peer can open it. Without a device
  /// the pointer is looked up: one that is neither readable host memory nor memory of an
  /// accelerator that HMC can use here is an error. Peers are told the type.
  [[nodiscard]] Result<LocalRegion> registerMemory(const std::string& name, void* data, size_t size,
                                                   Access access = Access::readWrite,
                                                   std::shared_ptr<const void> owner = nullptr,
                                                   const ArrayType& type = {});
  /// The same for memory of that device, which is not looked up.
  [[nodiscard]] Result<LocalRegion> registerMemory(const std::string& name, void* data, size_t size,
                                                   Device device, Access access = Access::readWrite,
                                                   std::shared_ptr<const void> owner = nullptr,
                                                   const ArrayType& type = {});
  /// Memory that the Node allocates: same-host peers map it, which is the fastest way there is.
  [[nodiscard]] Result<LocalRegion> allocate(const std::string& name, size_t size,
                                             Device device = {}, Access access = Access::readWrite,
                                             const ArrayType& type = {});

  /// Where nobody listens yet it tries again until the timeout, so that processes start in any
  /// order. "host:port" is short for "tcp://host:port".
  Result<Peer> connect(const std::string& address, Timeout timeout = kDefaultTimeout);
  /// Fails at once, with `disconnected`, where nobody listens.
  Result<Peer> connectOnce(const std::string& address, Timeout timeout = kDefaultTimeout);
  /// Waits for a peer of that name to be connected, whoever dialled.
  Result<Peer> peer(const std::string& name, Timeout timeout = kDefaultTimeout);
  std::vector<Peer> peers() const;  ///< All that are connected.

  /// Waits for the next note of any peer, in the order in which they came.
  Result<Note> nextNote(Timeout timeout = kDefaultTimeout);
  /// For poll(2) and its kin: readable while nextNote() would return at once. Stays the Node's, and
  /// goes with it.
  Result<int> noteFd();

  /// What peers ask with Peer::call(). Unanswered ones of a peer may take 64 MiB; then it is
  /// refused.
  [[nodiscard]] Result<Call> nextCall(Timeout timeout = kDefaultTimeout);
  /// Readable while nextCall() would return at once, as noteFd().
  Result<int> callFd();

  /// Which peers come and go, whoever dialled. The first call, of this or of peerEventFd(), begins
  /// with those that are connected; a peer that leaves before its coming was told is not told of.
  Result<PeerEvent> nextPeerEvent(Timeout timeout = kDefaultTimeout);
  /// Readable while nextPeerEvent() would return at once, as noteFd().
  Result<int> peerEventFd();

  /// What the destructor does, for a Node that other threads still use: their calls return with an
  /// error.
  void close();

 private:
  explicit Node(std::shared_ptr<NodeImpl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<NodeImpl> impl_;
};

}  // namespace hmc
