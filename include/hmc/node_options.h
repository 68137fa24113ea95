#pragma once

#include "hmc/cpp17.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "hmc/tls.h"
#include "hmc/trace.h"

namespace hmc {

/// How a Node is made; each has a sensible default.
struct NodeOptions {
  std::string name;  ///< for sentences and Node::peer(); a random one when empty
  /// Both sides need the same. Empty: that of HMC_SECRET; without one, processes of one user know
  /// each other on one host, and there is no listening where other hosts reach it...
  std::string secret;
  /// ... unless this says so: every host that reaches the listener can then read and write what is
  /// registered here. HMC_SECURITY=strict forbids it.
  bool insecure = false;
  /// The host name or address in what listen() answers, where peers reach us by another one than we
  /// bind to: behind NAT, in a container.
  std::string advertise;
  /// The ports at which tcp takes data of peers that connected to us, for a firewall:
  /// "20000-20015", or one. A Node takes one of them for each of its addresses that peers connect
  /// to. Empty: those of HMC_DATA_PORTS; without it, any that is free.
  std::string dataPorts;
  /// Peers open regions by grants alone (LocalRegion::grant), and no longer by their names.
  bool grantsOnly = false;
  TlsOptions tls;  ///< whether everything but shared memory of this host is encrypted
  /// What tcp moves without TLS has checksums (CRC-32C), in both directions, and a transfer whose
  /// bytes were altered on the way fails. It takes one of two Nodes to want it. ucx, which has
  /// none, is not used then. Not set: what HMC_INTEGRITY says; without it, no.
  std::optional<bool> integrity;
  /// The ones to use; of two that are about as fast the one that comes first. Empty: those of
  /// HMC_TRANSPORTS; without it, all, except that one whose use changes the process (ucx) serves
  /// only where nothing else does. Without "ipc" notes, tags and other messages to peers of this
  /// host take the socket too, not shared memory.
  std::vector<std::string> transports;
  /// RDMA queue pairs to each peer, 1 to 16: more of them help where one cannot fill the NIC.
  int channels = 1;
  std::chrono::milliseconds heartbeat{1000};
  /// A peer that is silent for so long is lost, and a cancelled transfer ends after twice that at
  /// the latest. Between two Nodes the shorter one of theirs counts, at both. Not set: what
  /// HMC_LEASE_MS says; without it, 10 s.
  std::optional<std::chrono::milliseconds> lease;
  /// Hears of every transfer: when it starts, when pieces of it are posted, when it ends. Small
  /// copies into mapped memory are slower with it. Without one, HMC_TRACE=stderr prints the same.
  TraceHook trace;
};

}  // namespace hmc
