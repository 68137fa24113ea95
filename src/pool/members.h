#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/event_fd.h"
#include "node/event_queue.h"
#include "node/node_impl.h"
#include "pool/address_space.h"
#include "pool/background_tasks.h"
#include "pool/early_notes.h"
#include "pool/occupancy.h"
#include "pool/record.h"
#include "pool/slot.h"
#include "store/group.h"

namespace hmc::pool {

// What a member tells another when it has mapped its slots, or knows that it cannot (Peer::notify).
inline constexpr const char* kMappedNote = "hmc pool: mapped";

// Who is in the pool and how this process reaches their slots. Members of this host are mapped as
// soon as they come; others are connected by the first copy. Safe from any thread.
class Members {
 public:
  // Both outlive it.
  Members(NodeImpl& node, const AddressSpace& addresses);
  ~Members();

  // What this process brings, by PoolSpace; null where it brings nothing.
  using Own = std::array<std::shared_ptr<LocalMemory>, 2>;
  // Returns when the members of this host have mapped our slots and we theirs. Those that do not
  // answer for the lease's length are not waited for.
  Status join(std::unique_ptr<store::Group> group, const Own& own, Deadline deadline);
  // Nobody reaches our slots any more, and we nobody's. Not ok when a peer had to be cut off, or
  // the store did not answer in time, or the others had given us up before.
  Status leave(Deadline deadline);

  // Waits until `count` ranks are here, and those of this host have mapped our slots and we theirs.
  // deadlineExceeded names who is missing.
  Status awaitRanks(uint32_t count, Deadline deadline);
  // Ranks whose member went without a word, and that nobody has taken since.
  std::set<uint32_t> lost() const;
  // Stops when the next member goes.
  std::stop_token nextDeparture() const;
  // 16 bytes that no other set of members has, or has had.
  std::string signature() const;

  // Null where the pool has no such slot.
  Slot* slot(const Place& place) const {
    return place.rank < capacity_ ? &slots_[indexOf(place.space) * capacity_ + place.rank]
                                  : nullptr;
  }
  // Connects to that member if need be, so that its slot is open.
  Status reach(const Place& place, Deadline deadline);
  // A transfer with that slot failed because the connection did: the next reach() makes another.
  void renew(const Place& place, const RemoteMapping* failed);

  // Ok while we are a member.
  Status status() const;
  // The same as far as our thread has heard, for copies: asking the store's client takes longer
  // than a small one.
  Status standing() const { return member_.load(std::memory_order_acquire) ? Status() : status(); }
  uint32_t rank() const { return rank_; }
  std::vector<uint32_t> ranks() const;
  Result<PoolSlot> describe(PoolSpace space, uint32_t rank) const;
  EventQueue<PoolEvent>& events() { return events_; }

 private:
  // Another member, as far as we know it.
  struct Other {
    store::Member member;
    Record record;
    bool here = false;       // on this host
    bool reaching = false;   // a thread connects to it and opens its slots
    bool reached = false;    // they are open
    bool mappedUs = false;   // it said so
    bool announced = false;  // events_ has it
    std::shared_ptr<PeerState> peer;
    Status why;  // why it could not be reached the last time
    // On this host: it has mapped our slots and we its, or that cannot be.
    bool settled() const { return !here || (reached && mappedUs) || !why.ok(); }
  };
  using Opened = std::array<Reach, 2>;

  Status attachOwn(const Own& own);
  Status begin(std::unique_ptr<store::Group> group, const Own& own);
  void run(const std::stop_token& stop);
  void hearGroup();
  void hearPeers();
  void hearNotes();
  // Heard of through our watch, or because we asked the store for it.
  enum class Source : uint8_t { watch, asked };
  void came(const store::Member& member, Source source);
  void went(uint32_t rank, const std::string& incarnation, const Status& why);
  void lostPeer(const PeerState& peer, const Status& why);
  void reap(const store::Member& dead);
  void expelled(const Status& why);
  void announceLocked(Other& other);
  Other* findLocked(uint32_t rank, const std::string& incarnation);
  void reachLater(uint32_t rank, const std::string& incarnation);
  void reachNow(uint32_t rank, const std::string& incarnation, Deadline deadline);
  void providePages(uint32_t rank, const std::string& incarnation);
  Result<std::shared_ptr<PeerState>> connectTo(const Record& record, bool here, Deadline deadline);
  Result<Opened> openSlots(uint32_t rank, const Record& record,
                           const std::shared_ptr<PeerState>& peer, bool here, Deadline deadline);
  Result<Reach> openSlot(PoolSpace space, uint32_t rank, const std::shared_ptr<PeerState>& peer,
                         bool here, Deadline deadline);
  Status awaitFree(PoolSpace space, uint32_t rank, Deadline deadline);
  void retire(uint32_t rank);
  void closeAll();
  void awaitNeighbours(Deadline deadline);
  bool neighboursSettledLocked() const;
  Status notHere(uint32_t rank) const;
  std::shared_ptr<store::Group> group() const;
  size_t slotIndex(PoolSpace space, uint32_t rank) const {
    return indexOf(space) * capacity_ + rank;
  }

  NodeImpl& node_;
  const AddressSpace& addresses_;
  const uint32_t capacity_;
  const std::string host_;    // hostId()
  const std::string layout_;  // encoded
  const std::unique_ptr<Slot[]> slots_;
  const std::shared_ptr<Occupancy> occupancy_ = std::make_shared<Occupancy>();
  EventQueue<PoolEvent> events_;
  std::array<Region, 2> attached_{};  // our own slots, once we have had a rank
  Own own_{};                         // guarded by slotMutex_: what we bring, while we are a member
  uint32_t rank_ = 0;                 // set by join()

  std::mutex slotMutex_;  // held while slots are opened and closed; taken before mutex_
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<store::Group> group_;  // guarded by mutex_: set while we are a member
  std::atomic<bool> member_{false};      // the same, and nobody has expelled us
  bool joined_ = false;   // guarded by mutex_: those that were here first have been announced
  bool closing_ = false;  // guarded by mutex_: tasks_ shall come to an end
  std::map<uint32_t, std::string> dead_;  // guarded by mutex_: incarnations whose process ended
  std::map<uint32_t, std::string> gone_;  // guarded by mutex_: those that our watch told of last
  EarlyNotes early_;                      // guarded by mutex_: who mapped us
  std::map<uint32_t, Other> others_;      // guarded by mutex_, by rank
  std::set<uint32_t> lost_;               // guarded by mutex_
  std::stop_source departure_;            // guarded by mutex_: the next one
  std::map<size_t, std::shared_ptr<RemoteMapping>> retired_;  // guarded by mutex_: of who left
  BackgroundTasks tasks_;
  std::jthread thread_;  // set while we are a member
};

}  // namespace hmc::pool
