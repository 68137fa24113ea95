#pragma once

#include "regions.h"

namespace hmc::python {

// The class behind hmc.Peer.
struct PeerOf {
  Handle<Node> node;
  Handle<Peer> peer;
};

}  // namespace hmc::python
