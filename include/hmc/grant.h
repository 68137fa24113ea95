#pragma once

// Capabilities: bytes that say what their holder may reach of one region, and until when. The owner
// of the region makes them (LocalRegion::grant), whoever holds one can make a narrower one without
// asking anybody, and Peer::open takes them in the place of a name. The owner checks each of them.

#include "hmc/cpp17.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "hmc/access.h"
#include "hmc/deadline.h"
#include "hmc/export.h"
#include "hmc/result.h"

namespace hmc {

struct GrantToken;

/// What a grant allows at the most. By default as much as what it is made of.
struct GrantOptions {
  size_t offset = 0;             ///< counts from the first byte of what it is made of
  size_t size = 0;               ///< 0: all that follows
  std::optional<Access> access;  ///< What its holder may do.
  /// From now on; 0: no end of its own. The end is a moment of the wall clock (UTC), and the
  /// owner's clock decides: hosts whose clocks differ (Peer::probe) end it earlier or later by as
  /// much.
  Timeout lifetime{0};
  /// Peer::id(), as the owner sees it, of the only one who may open it. Empty: whoever has the
  /// bytes.
  std::string peerId;
};

/// A handle to bytes that do not change. Safe from any thread.
class HMC_API Grant {
 public:
  /// What bytes() gave, perhaps in another process. Whether they are genuine only the owner can
  /// tell.
  [[nodiscard]] static Result<Grant> fromBytes(const std::string& bytes);

  /// As good as the grant itself, for whoever reads them. Not text.
  const std::string& bytes() const { return bytes_; }
  /// Of the region that it is for.
  const std::string& name() const;
  /// Of the range that it is for: a region that is opened by it has that size, and begins there.
  size_t size() const;
  Access access() const;  ///< What its holder may do.
  /// None when it ends only with the region.
  std::optional<std::chrono::system_clock::time_point> expires() const;

  /// One that allows less, for somebody else. It can be narrowed again, 16 times in all.
  /// invalidArgument, outOfRange or permissionDenied for what this one does not allow; an end that
  /// is later than this one's is this one's.
  [[nodiscard]] Result<Grant> narrow(const GrantOptions& options) const;

 private:
  friend class LocalMemory;
  explicit Grant(GrantToken token);
  std::shared_ptr<const GrantToken> token_;
  std::string bytes_;
};

}  // namespace hmc
