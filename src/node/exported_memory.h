#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "hmc/deadline.h"
#include "hmc/region_info.h"
#include "node/registrations.h"

namespace hmc {

class PeerState;

// Memory of ours that peers may open under its name, until it is revoked. Safe from any thread.
class ExportedMemory : public std::enable_shared_from_this<ExportedMemory> {
 public:
  // No other memory of the Node ever has the same `number`. With Exposure::exact, it is what one
  // peer opened by a grant.
  ExportedMemory(const Engines& engines, std::string name, const Region& region, Access access,
                 uint64_t number, Exposure exposure = Exposure::peers, ArrayType type = {});

  const std::string& name() const { return name_; }
  const Region& region() const { return region_; }
  Access access() const { return access_; }
  uint64_t number() const { return number_; }
  RegionInfo info() const { return {name_, region_.size, region_.device, access_, type_}; }

  // What that peer needs to open it over these transports; from then on it is asked when the memory
  // is taken back. Empty when that takes long: the peer is told (kRegionReady) when it is worth
  // asking again.
  Result<std::string> describe(const std::shared_ptr<PeerState>& opener,
                               const std::vector<std::string>& transports);

  // For whoever copies here on a peer's behalf: while the answer lives, revoke() waits.
  Result<std::shared_ptr<const ExportedMemory>> use();

  // Takes it back: begin() asks every peer that opened it to let go, end() closes those that do not
  // confirm it in time. The sentence names them. A copy or registration of ours that is under way
  // is waited for beyond the timeout: each has a limit of its own. end() not on the control thread;
  // of several, the one whose time is over first does it.
  Status revoke(std::chrono::nanoseconds timeout) {
    begin();
    return end(timeout, timeout);
  }
  // `letGo` is told when all have, by any thread, unless another begin() came first.
  void begin(std::function<void()> letGo = {});
  // After begin(). The sentence speaks of the timeout.
  Status end(Deadline deadline, std::chrono::nanoseconds timeout);
  bool revoked() const;
  // After begin(): nobody has it open.
  bool isFree() const;
  // The peer has let go of it.
  void released(const PeerState& peer);
  // The same without having been asked: it does not use it any more.
  void closedBy(const PeerState& peer);
  // The peer is gone, and with it its links.
  void left(const PeerState& peer);

 private:
  using Peers = std::vector<std::shared_ptr<PeerState>>;
  Status gone() const;
  std::vector<size_t> indexesOf(const std::vector<std::string>& transports) const;
  Status registerLaterLocked(const std::vector<size_t>& transports);
  void registerAll();
  void ask(const std::shared_ptr<PeerState>& peer);
  void remove(const PeerState& peer, bool left);
  Status close(const Peers& late, std::chrono::nanoseconds timeout);

  const Engines& engines_;
  const std::string name_;
  const Region region_;
  const Access access_;
  const uint64_t number_;
  const ArrayType type_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::weak_ptr<PeerState>> openers_;   // guarded by mutex_
  Registrations registrations_;                     // made under mutex_, while it is not revoked
  size_t users_ = 0;                                // guarded by mutex_: answers of use()
  bool revoked_ = false;                            // guarded by mutex_
  bool ending_ = false;                             // guarded by mutex_: a thread is in end()
  bool finished_ = false;                           // guarded by mutex_: end() is over
  Status outcome_;                                  // guarded by mutex_: of end()
  std::function<void()> letGo_;                     // guarded by mutex_
  Peers waitingFor_;                                // guarded by mutex_: have not let go yet
  Peers silent_;                                    // guarded by mutex_: lost before they did
  std::set<size_t> toRegister_;                     // guarded by mutex_: by thread_
  std::vector<std::weak_ptr<PeerState>> awaiting_;  // guarded by mutex_: told when that is done
  bool registering_ = false;                        // guarded by mutex_: thread_ is busy
  std::jthread thread_;                             // last: uses the rest
};

// The memory of a Node that peers can open, by name. Safe from any thread.
class MemoryTable {
 public:
  // `owner` is the Node's name, for sentences.
  explicit MemoryTable(std::string owner) : owner_(std::move(owner)) {}

  using Memory = std::shared_ptr<ExportedMemory>;
  // alreadyExists while another has that name.
  Status add(const Memory& memory);
  // Where it is not there, the sentence has the names of those that are, if whoever asks may know.
  Result<Memory> find(const std::string& name, bool tellNames) const;
  // Those whose names follow that one, in their order, `most` at most.
  std::vector<RegionInfo> listAfter(const std::string& name, size_t most) const;
  // The same if it is still the one of that number.
  Result<Memory> find(const std::string& name, uint64_t number) const;

  // Frees the name, and takes the memory back from all peers: see ExportedMemory::revoke().
  void beginRevoke(const Memory& memory);
  Status endRevoke(const Memory& memory, Deadline deadline, std::chrono::nanoseconds timeout);
  // A peer has let go of a memory that is being revoked.
  void released(const PeerState& peer, uint64_t number);
  void left(const PeerState& peer);

 private:
  std::map<uint64_t, Memory> revoking() const;

  const std::string owner_;
  mutable std::mutex mutex_;
  std::map<std::string, Memory> byName_;  // guarded by mutex_
  std::map<uint64_t, Memory> revoking_;   // guarded by mutex_
};

}  // namespace hmc
