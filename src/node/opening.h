#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node/descriptions.h"
#include "node/path_chooser.h"
#include "node/path_notes.h"
#include "node/remote_mapping.h"

namespace hmc {

// One Peer::open() under way: asks the peer for keys, opens the paths that are worth having, and
// remembers why the others are not taken.
class Opening {
 public:
  // With a `place` the region is mapped there or not opened at all.
  Opening(std::shared_ptr<NodeImpl> node, std::shared_ptr<PeerState> peer,
          const WantedRegion& region, Deadline deadline, void* place);

  // Over those of the Node's transports, the preferred one first. Nothing when none of them works;
  // an error when the peer cannot be asked or does not have the region.
  Result<std::shared_ptr<RemoteMapping>> over(const std::vector<size_t>& transports);

  // Why each transport that was tried does not work: "ipc: reason; tcp: reason".
  const std::string& reasons() const { return reasons_; }
  void addReason(const std::string& transport, const std::string& why);
  PassedOver& passed() { return passed_; }

 private:
  struct Candidate {
    size_t transport = 0;
    std::optional<RegionDescription::Offer> offer;  // once the peer was asked
    bool staged = false;                            // the transport cannot reach the peer's memory
    std::unique_ptr<OpenPath> path;                 // once it is open
  };

  PathChooser chooserFor(DeviceKind remote) const;
  std::vector<size_t> worthHaving(const PathChooser& chooser,
                                  const std::vector<Candidate>& candidates) const;
  // The request for the region and those transports' keys.
  std::string request(const std::vector<Candidate>& candidates,
                      const std::vector<size_t>& about) const;
  // Asks the peer for the region, and for what it offers for those candidates.
  Result<RegionDescription> ask(std::vector<Candidate>& candidates,
                                const std::vector<size_t>& about) const;
  Result<std::unique_ptr<OpenPath>> open(Candidate& candidate,
                                         const RegionDescription& description) const;
  PathOption optionOf(const Candidate& candidate) const;
  // Opens what is worth having of them and drops what does not work, until both are settled.
  Result<std::vector<size_t>> settle(const PathChooser& chooser, std::vector<Candidate>& candidates,
                                     const RegionDescription& description);
  void giveUp(size_t transport, const Status& why);
  Result<std::shared_ptr<RemoteMapping>> finish(const PathChooser& chooser,
                                                std::vector<Candidate> candidates,
                                                const RegionDescription& description);

  const std::shared_ptr<NodeImpl> node_;
  const std::shared_ptr<PeerState> peer_;
  const OpenRegions::Pending pending_;
  const std::string region_;
  std::unique_ptr<GrantedOpening> granted_;  // none by name
  const Deadline deadline_;
  void* const place_;
  std::string reasons_;
  PassedOver passed_;
};

}  // namespace hmc
