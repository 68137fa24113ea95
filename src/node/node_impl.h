#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/fd_exchange.h"
#include "base/fork_guard.h"
#include "control/control.h"
#include "hmc/node.h"
#include "node/descriptions.h"
#include "node/event_queue.h"
#include "node/exported_memory.h"
#include "node/granted_memory.h"
#include "node/local_memory.h"
#include "node/measurements.h"
#include "node/peer_state.h"
#include "node/region_list.h"
#include "node/remote_mapping.h"
#include "node/served_call.h"
#include "node/stream_order.h"
#include "node/wanted_region.h"
#include "transfer/engine.h"
#include "transport/registry.h"

namespace hmc {

// What peers ask of each other (Channel::call).
inline constexpr uint16_t kOpenLink = 1;
inline constexpr uint16_t kDropLink = 13;
inline constexpr uint16_t kProbe = 3;
inline constexpr uint16_t kOpenRegion = 4;
// The same by a grant in the place of a name; and that what was opened by one is not needed any
// more.
inline constexpr uint16_t kOpenGrant = 14;
inline constexpr uint16_t kCloseGrant = 15;
inline constexpr uint16_t kListRegions = 17;

// What a facade adds to a Node. Both are called on the control thread and must not block.
class NodeExtension {
 public:
  virtual ~NodeExtension() = default;
  // Answers a call of the peer's that the Node does not know.
  virtual Result<std::string> answer(PeerState& peer, uint16_t method,
                                     std::string_view request) = 0;
  // The peer is gone; what it had sent before can still be received.
  virtual void left(const std::shared_ptr<PeerState>& peer) = 0;
};

// One participant: its transports, listeners, peers and registered memory. Handles share it;
// close() ends it for all of them. Safe from any thread.
class NodeImpl final : public control::ControlEvents,
                       public std::enable_shared_from_this<NodeImpl> {
 public:
  // Where the transports come from; tests bring their own.
  using TransportMaker =
      std::function<Result<TransportSet>(const std::vector<std::string>&, const TransportNeeds&)>;
  static Result<std::shared_ptr<NodeImpl>> create(const NodeOptions& options,
                                                  const TransportMaker& make = makeTransports,
                                                  std::shared_ptr<NodeExtension> extension = {});
  ~NodeImpl() override;

  const std::string& name() const { return name_; }
  const std::string& id() const { return control_->id(); }
  std::chrono::milliseconds lease() const { return lease_; }
  // In the child of a fork: there everything is refused, and nothing is ended.
  Status checkFork() const { return fork_.inChild() ? ForkGuard::refusal() : Status(); }
  const Engines& engines() const { return engines_; }
  const std::vector<TransportSet::Missing>& missing() const { return missing_; }
  const Transport::Facts& factsOf(size_t transport) const {
    return engines_[transport]->transport().facts();
  }
  // Is that transport left alone until somebody names it?
  bool onlyByName(size_t transport) const { return !named_ && factsOf(transport).onDemand; }
  // May a peer have us use that transport? One that changes the process is not for strangers,
  // unless it was named here: in the options, for a listener, or to open a region.
  bool serves(size_t transport, const PeerState& peer) const;
  // As they were when the Node was made, so that what explain() says is what put() does.
  const Measurements& measurements() const { return measurements_; }

  // `label` says what the listener is for; peers are told.
  Result<std::string> listen(const std::string& address, const std::string& label = "");
  // What peers dial to reach what listen() has bound.
  std::string advertised(const std::string& bound) const;
  Status closeListener(const std::string& address);

  // Memory of the caller's, or with `owned` what a Backend's allocate() answered. Without a name no
  // peer can open it. `owner` goes last.
  Result<std::shared_ptr<LocalMemory>> registerMemory(const std::string& name, const Region& region,
                                                      Access access, bool owned,
                                                      std::shared_ptr<const void> owner = nullptr,
                                                      const ArrayType& type = {});
  // Takes memory back from peers, and what they have opened of it by grants: see
  // ExportedMemory::revoke().
  Status revoke(const std::shared_ptr<ExportedMemory>& memory, std::chrono::nanoseconds timeout);
  // What that peer has opened: the memory of that name, or a part of it that was granted, if it is
  // still the one of that number. Revoking it waits as long as the answer lives.
  Result<std::shared_ptr<const ExportedMemory>> registered(const PeerState& peer,
                                                           const std::string& name,
                                                           uint64_t number) const;
  // Grants for that memory, and their end: see LocalRegion.
  Result<GrantToken> grant(const ExportedMemory& memory, const GrantOptions& options) const;
  Status revoke(const GrantToken& grant, std::chrono::nanoseconds timeout);
  uint64_t nextMemoryNumber() { return ++lastMemory_; }
  SlotCopies& slotCopies() { return slotCopies_; }
  StreamHolds& streamHolds() { return streamHolds_; }

  // `rank` is what the peer shall call us.
  Result<std::shared_ptr<PeerState>> connect(const std::string& address,
                                             std::optional<uint32_t> rank, Deadline deadline);
  // The same, where the listener may still have to appear before the deadline.
  Result<std::shared_ptr<PeerState>> connectPatiently(const std::string& address,
                                                      std::optional<uint32_t> rank,
                                                      Deadline deadline);
  // The newest peer that `wanted` is true for, waiting for it to come; asked again whenever a peer
  // came, left or was answered by the extension. `what` is for the sentence.
  using PeerTest = std::function<bool(const PeerState&)>;
  Result<std::shared_ptr<PeerState>> waitForPeer(const PeerTest& wanted, const std::string& what,
                                                 Deadline deadline);
  std::vector<std::shared_ptr<PeerState>> peers() const;

  // Opens a region of the peer over the best of `transports`, or if none are named, of all; those
  // that want to be named only serve when nothing else does. If none works, the sentence has each
  // one's reason. With a `place`, which a backend has reserved, it is mapped there or not opened.
  Result<std::shared_ptr<RemoteMapping>> open(const std::shared_ptr<PeerState>& peer,
                                              const WantedRegion& region,
                                              const std::vector<std::string>& transports,
                                              Deadline deadline, void* place = nullptr);

  // Of Peer.
  Result<std::vector<RegionInfo>> regionsOf(const PeerState& peer, Deadline deadline) const;
  Result<RegionInfo> regionOf(const PeerState& peer, const std::string& name,
                              Deadline deadline) const;

  // Every transport that there is, usable or not, with the reason: in this process, and to a peer.
  std::vector<PathReport> transports() const;
  std::vector<TransportCounts> counters() const;
  std::vector<PathReport> explain(const PeerState& peer) const;
  // The same for a put of `size` bytes of memory on that device, with predictions.
  std::vector<PathReport> explain(const PeerState& peer, Device local, size_t size) const;
  Result<PeerFacts> probe(const PeerState& peer, Deadline deadline) const;

  struct NoteFrom {
    std::shared_ptr<PeerState> peer;
    std::string bytes;
  };
  Result<NoteFrom> nextNote(Deadline deadline);
  // Readable while nextNote() has an answer; made when it is first asked for.
  Result<int> noteFd();

  // The oldest call of a peer that nobody took yet.
  Result<std::shared_ptr<ServedCall>> nextCall(Deadline deadline);
  Result<int> callFd();

  struct PeerNews {
    std::shared_ptr<PeerState> peer;
    Status why;  // it left; ok when it joined
  };
  // From the first call of one of these on, peers that come and go are queued.
  Result<PeerNews> nextPeerEvent(Deadline deadline);
  Result<int> peerEventFd();

  // Closes every listener, says goodbye to every peer and finishes everything pending.
  void close();

  // ControlEvents
  Status joined(const std::shared_ptr<control::Channel>& channel) override;
  Status joinedAgain(const std::shared_ptr<control::Channel>& channel,
                     const std::string& attributes) override;
  void left(const std::shared_ptr<control::Channel>& channel, const Status& why) override;
  void answer(const std::shared_ptr<control::Channel>& channel, uint16_t method,
              std::string_view request, control::Channel::Answered reply) override;
  void note(const std::shared_ptr<control::Channel>& channel, std::string payload) override;

 private:
  NodeImpl(std::string name, std::unique_ptr<FdExchange> fds, TransportSet transports,
           const NodeOptions& options, std::shared_ptr<NodeExtension> extension);
  Attributes attributes(std::optional<uint32_t> rank) const;
  std::shared_ptr<PeerState> find(const control::Channel* channel) const;
  std::vector<std::string> served(const PeerState& peer, std::vector<std::string> transports) const;
  Result<std::string> describeRegion(const std::shared_ptr<PeerState>& peer,
                                     std::string_view request);
  Result<std::string> listRegions(const PeerState& peer, std::string_view request) const;
  Status checkOpensByName() const;
  Result<std::vector<RegionInfo>> askForRegions(const PeerState& peer, const RegionQuestion& what,
                                                Deadline deadline) const;
  Result<std::string> changeAtomically(const PeerState& peer, std::string_view request) const;
  Result<std::string> describeGranted(const std::shared_ptr<PeerState>& peer,
                                      std::string_view request);
  Result<std::string> closeGranted(const PeerState& peer, std::string_view request);
  Result<std::string> hearRelease(const PeerState& peer, std::string_view request);
  std::string describeSelf() const;
  Result<std::string> answerNow(const std::shared_ptr<PeerState>& peer, uint16_t method,
                                std::string_view request);
  // The usable transports that open() tries first, and those that it tries when none of them works.
  struct Rounds {
    std::vector<size_t> first;
    std::vector<size_t> second;
  };
  Rounds rounds(const std::vector<TransportChoice>& choices,
                const std::vector<std::string>& asked) const;
  // The index of the one that a put of that size takes, if any does.
  std::optional<size_t> taken(const PeerState& peer, DeviceKind local, size_t size) const;
  PassedOver leftOut(const PeerState& peer) const;
  void takeCall(const std::shared_ptr<PeerState>& peer, std::string_view request,
                control::Channel::Answered reply);
  Status checkUsable() const;
  Status nothingCame(const char* what) const;
  void dropOldNotes();
  void watchPeers();

  const ForkGuard fork_;
  const std::string name_;
  const std::unique_ptr<FdExchange> fds_;
  const std::shared_ptr<NodeExtension> extension_;  // may be null
  const bool named_;           // NodeOptions::transports says which transports there are
  Measurements measurements_;  // set by create()
  const std::chrono::milliseconds lease_;
  const std::string advertise_;
  std::atomic<uint64_t> lastMemory_{0};
  Engines engines_;
  std::vector<TransportSet::Missing> missing_;
  const std::string grantKey_;
  const bool grantsOnly_;
  MemoryTable memory_;
  GrantedMemory granted_;
  // These go before the engines, whose transfers and registrations they hold.
  StreamHolds streamHolds_;
  SlotCopies slotCopies_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;                        // peers_ or closed_
  std::vector<std::shared_ptr<PeerState>> peers_;          // guarded by mutex_, oldest first
  std::map<std::string, Attributes::Listener> listeners_;  // guarded by mutex_, by address
  EventQueue<NoteFrom> notes_;
  EventQueue<std::shared_ptr<ServedCall>> calls_;
  EventQueue<PeerNews> peerEvents_;
  std::set<std::string> openedOver_;  // guarded by mutex_: transports that a caller named
  bool peersWatched_ = false;         // guarded by mutex_: peerEvents_ is used
  bool closed_ = false;               // guarded by mutex_

  std::unique_ptr<control::Control> control_;  // last: its thread calls us until it is gone
};

}  // namespace hmc
