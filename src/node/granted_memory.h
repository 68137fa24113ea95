#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hmc/deadline.h"
#include "node/exported_memory.h"
#include "node/grant_token.h"

namespace hmc {

// What peers have open by grants. Each time one opens a grant it gets a memory of its own, which is
// a part of a region: it is taken back when the grant ends, when the region is, or when the peer
// closes it. Safe from any thread.
class GrantedMemory {
 public:
  using Memory = std::shared_ptr<ExportedMemory>;
  // How many a peer may have open.
  static constexpr size_t kMost = 256;

  // A peer that does not let go of a grant that has expired is disconnected after `patience`.
  explicit GrantedMemory(std::chrono::milliseconds patience) : patience_(patience) {}

  // That of the peer's `opening`, of which it may ask several times: the part of `region` that the
  // grant allows. It has been checked that the peer may open it. `make` makes the part.
  Result<Memory> open(const PeerState& peer, uint64_t opening, const Memory& region,
                      const GrantToken& grant, const std::function<Memory()>& make);
  // What that peer has open under that number, or null.
  Memory find(const PeerState& peer, uint64_t number) const;
  // The peer has closed it.
  void closed(const PeerState& peer, uint64_t opening);
  // The peer has let go of it, as it was asked to.
  void released(const PeerState& peer, uint64_t number);
  void left(const PeerState& peer);

  // Takes back what was opened by that grant and those made of it, from now on and for good; or all
  // that is part of that region, which has been begin()ned. As ExportedMemory::begin() and end().
  std::vector<Memory> beginRevoke(const std::string& grantId);
  std::vector<Memory> beginRevoke(const ExportedMemory& region);
  Status endRevoke(const std::vector<Memory>& parts, Deadline deadline,
                   std::chrono::nanoseconds timeout);

 private:
  using Time = Deadline::Clock::time_point;
  // The peer is a number here: it may be gone.
  using Key = std::pair<const PeerState*, uint64_t>;
  struct Open {
    Memory memory;
    uint64_t opening = 0;
    uint64_t region = 0;            // its number
    std::string grant;              // its id
    Time at;                        // when the thread looks at it
    bool closed = false;            // by the peer, or it is gone
    std::optional<Deadline> limit;  // it is being taken back
  };
  using Opens = std::map<Key, Open>;

  std::pair<Opens::iterator, Opens::iterator> ofLocked(const PeerState& peer);
  Status startLocked();
  void lookAtLocked(const Key& key, Open& open, Time when);
  void lookNow(const Key& key);
  std::vector<Memory> beginRevoke(const std::function<bool(const Open&)>& which);
  void run(const std::stop_token& stop);
  void advance(const Key& key, std::unique_lock<std::mutex>& lock);

  const std::chrono::milliseconds patience_;
  mutable std::mutex mutex_;
  std::condition_variable_any news_;
  Opens opens_;                              // guarded by mutex_
  std::set<std::pair<Time, Key>> schedule_;  // guarded by mutex_: opens_ by Open::at
  std::set<std::string> ended_;              // guarded by mutex_: ids of grants that were revoked
  std::jthread thread_;                      // last: uses the rest
};

}  // namespace hmc
