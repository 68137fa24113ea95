#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "control/channel.h"
#include "node/descriptions.h"
#include "node/link_end.h"
#include "node/open_regions.h"
#include "node/path_notes.h"
#include "node/staging.h"
#include "transfer/engine.h"
#include "transport/select.h"

namespace hmc {

class NodeImpl;

// What peers say to each other through PeerState::channel().
using control::KindSet;
using control::Message;
using control::MessageKind;

// One peer: the channel to it and the links that were opened to it. Safe from any thread.
class PeerState {
 public:
  PeerState(NodeImpl& node, std::shared_ptr<control::Channel> channel, Attributes attributes);

  control::Channel& channel() const { return *channel_; }
  // "worker-3 (10.0.0.3:41234)"
  const std::string& title() const { return title_; }
  Attributes attributes() const;
  // Of its calls that wait for an answer of our user's.
  std::atomic<size_t>& unansweredBytes() { return unansweredBytes_; }
  void setAttributes(Attributes attributes);

  // It is on another host, or in another network namespace of this one.
  bool away() const { return channel_->remoteHost() != channel_->localHost(); }

  // Which of the Node's transports reach this peer, in the Node's order.
  std::vector<TransportChoice> choices() const;

  // The link over the Node's i-th transport; the first caller opens it together with the peer.
  Result<std::shared_ptr<Link>> link(size_t transport, Deadline deadline);
  // That link failed while the peer lives, or a transfer over it was late: the next link() opens
  // another.
  void retire(const std::shared_ptr<Link>& link);
  // The same for one that nobody can use any more: the peer drops its end.
  void drop(const std::shared_ptr<Link>& link, const Status& why);
  // The peer has retired one. Runs on the control thread.
  Result<std::string> dropLink(std::string_view request);
  // The peer opens a link: answers our address. Runs on the control thread.
  Result<std::string> acceptLink(std::string_view request);

  // The peer keeps slots for us that such a link reaches: imports them.
  Result<std::shared_ptr<FarStage>> stage(size_t transport, Link& link, StagedRegion::What what,
                                          Deadline deadline);
  // We keep slots for the peer, until it goes. These two run on the control thread; a copy is
  // answered when its device is done.
  Result<std::string> offerStage(std::string_view request);
  void copySlot(std::string_view request, control::Channel::Answered reply);

  // How often it said that a region is ready; wait until it does so again.
  uint64_t regionsReady() const;
  Status awaitRegion(const std::string& region, uint64_t seen, Deadline deadline);
  std::string hearRegionReady();
  // Its regions that are open here.
  OpenRegions& regions() { return regions_; }
  // It takes one of them back: answers kReleased, or nothing and tells it later. Runs on the
  // control thread.
  Result<std::string> releaseRegion(std::string_view request);

  // What is known about the paths that its regions were opened over.
  PathNotes& paths() { return paths_; }
  const PathNotes& paths() const { return paths_; }

  // Transfers that a notification must not overtake.
  void track(const std::shared_ptr<TransferState>& transfer);
  // It is done, and need not be kept any more.
  void forget(const TransferState& transfer);
  Status flush(Deadline deadline);
  // There is nothing to flush.
  bool quiet() const { return activeCount_.load(std::memory_order_acquire) == 0; }

  // Ends the conversation from our side: goodbye on the channel, and end().
  void close(const Status& why);
  // The channel ended: every link goes, everything pending finishes with the reason.
  void end(const Status& why);

 private:
  // What there is between us and the peer over one transport.
  struct Connection {
    std::vector<std::shared_ptr<Link>> links;  // more than one when both sides opened at once
    bool opening = false;
    std::shared_ptr<FarSlots> farSlots;  // of the peer's for us
    std::shared_ptr<StageHost> stage;    // of ours for the peer
  };
  // The peer's end of a link of ours, which need not be in use any more.
  struct FarEnd {
    std::weak_ptr<Link> link;
    size_t transport = 0;
    std::string address;
  };
  Result<SlotCopies::Copy> startCopy(std::string_view request);
  Result<size_t> transportCalled(const std::string& name) const;
  Result<std::shared_ptr<Link>> openLink(size_t transport, Deadline deadline);
  struct MadeLink {
    std::shared_ptr<Link> link;
    std::shared_ptr<LinkEnd> end;
  };
  Result<MadeLink> makeLink(size_t transport);
  Status checkLinks(size_t transport) const;
  // `address` is that of the peer's end.
  Status keep(size_t transport, const MadeLink& made, const std::string& address);
  // Its address is empty when it is not known any more.
  FarEnd forgetFarEnd(const std::shared_ptr<Link>& link);
  using Active = std::unordered_map<const TransferState*, std::shared_ptr<TransferState>>;
  // Those of active_ that are done, to be dropped without the lock: the last handle of a link may
  // go.
  Active takeDoneLocked();

  NodeImpl& node_;
  const std::shared_ptr<control::Channel> channel_;
  const std::string title_;
  PathNotes paths_;
  OpenRegions regions_;

  mutable std::mutex mutex_;
  std::condition_variable opened_;
  Attributes attributes_;                // guarded by mutex_
  std::vector<Connection> connections_;  // guarded by mutex_, by transport
  std::vector<FarEnd> farEnds_;          // guarded by mutex_
  Active active_;                        // guarded by mutex_
  size_t lookAt_ = 0;  // guarded by mutex_: when active_ may have much that is done
  std::atomic<size_t> unansweredBytes_{0};
  std::atomic<size_t> activeCount_{0};  // its size: spares flush() the lock
  Status ended_;                        // guarded by mutex_
  uint64_t regionsReady_ = 0;           // guarded by mutex_
};

}  // namespace hmc
