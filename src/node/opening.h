#pragma once

#include <memory>
#include <string>
#include <vector>

#include "node/path_chooser.h"
#include "node/path_notes.h"
#include "node/remote_mapping.h"

namespace hmc {

// One Peer::open() under way: asks the peer for keys, opens the paths that are worth having, and
// remembers why the others are not taken.
class Opening {
 public:
  Opening(std::shared_ptr<NodeImpl> node, std::shared_ptr<PeerState> peer, std::string region,
          Deadline deadline);

  // Over those of the Node's transports, in the order in which they are liked. Nothing when none of
  // them works; an error when the peer cannot be asked or does not have the region.
  Result<std::shared_ptr<RemoteMapping>> over(const std::vector<size_t>& transports);

  // Why each transport that was tried does not work.
  const std::string& reasons() const { return reasons_; }
  PassedOver& passed() { return passed_; }

 private:
  struct Candidate {
    size_t transport = 0;
    const RegionDescription::Offer* offer = nullptr;
    bool staged = false;  // the transport does not reach the peer's memory: through slots there
    std::unique_ptr<OpenPath> path;  // once it is open
  };

  Result<RegionDescription> ask(const std::vector<size_t>& transports) const;
  Result<std::unique_ptr<OpenPath>> open(Candidate& candidate,
                                         const RegionDescription& description) const;
  PathOption optionOf(const Candidate& candidate) const;
  // Opens what is worth having of them and drops what does not work, until both are settled.
  std::vector<size_t> settle(const PathChooser& chooser, std::vector<Candidate>& candidates,
                             const RegionDescription& description);
  void giveUp(size_t transport, const Status& why);
  std::shared_ptr<RemoteMapping> finish(const PathChooser& chooser,
                                        std::vector<Candidate> candidates,
                                        const RegionDescription& description);

  const std::shared_ptr<NodeImpl> node_;
  const std::shared_ptr<PeerState> peer_;
  const std::string region_;
  const Deadline deadline_;
  std::string reasons_;
  PassedOver passed_;
};

}  // namespace hmc
