#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "hmc/result.h"

namespace hmc {

class RemoteMapping;

// Says that a region which could not be opened at once can be now (Channel::call).
inline constexpr uint16_t kRegionReady = 11;
// What peers ask of each other about taking memory back. The answer to the first is kReleased, or
// nothing: then the second follows when the last transfer has let go.
inline constexpr uint16_t kRevokeRegion = 9;
inline constexpr uint16_t kRegionReleased = 10;
inline constexpr const char* kReleased = "released";

// The regions of one peer that are open here, so that the peer can take them back. Safe from any
// thread.
class OpenRegions {
 public:
  // While one of these lives, a region may be opened that the peer takes back before we know of it.
  class Pending {
   public:
    explicit Pending(OpenRegions& regions);
    ~Pending();
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;

   private:
    OpenRegions& regions_;
  };

  // The mapping is handed out from now on, unless its region has been revoked. Not owned: it calls
  // remove() before it goes. The caller has a Pending.
  Status add(RemoteMapping& mapping, uint64_t number);
  void remove(const RemoteMapping& mapping);

  // Ends all use of that region. `released` is called once, as soon as no thread touches it any
  // more, by one of those or before this returns; never where it could not be unmapped.
  void revoke(uint64_t number, std::function<void()> released);

 private:
  std::mutex mutex_;
  std::multimap<uint64_t, RemoteMapping*> mappings_;  // guarded by mutex_, by region
  size_t pending_ = 0;                                // guarded by mutex_
  std::set<uint64_t> revokedMeanwhile_;               // guarded by mutex_: while there are pending
};

}  // namespace hmc
