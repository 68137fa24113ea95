#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "hmc/device.h"

namespace hmc {

// The transports that open() went past, of those that reach the peer.
struct PassedOver {
  std::string broken;   // "ipc: why it failed": they should have worked
  std::string unasked;  // "ipc": the caller left them out

  void addBroken(const std::string& transport, const std::string& why);
  void addUnasked(const std::string& transport);
};

// What opening regions of one peer has shown about the paths to it. Safe from any thread.
class PathNotes {
 public:
  // About one transport.
  struct Note {
    std::vector<std::string> used;  // paths, in the order of first use
    std::string failure;  // why the last region could not be opened over it, until one could
    std::string staged;   // why the last region was staged over there, if one was
    // Why memory of ours last passed through slots here, if it did though the transport can touch
    // its kind.
    std::string stagedHere;
  };
  Note of(const std::string& transport) const;
  void used(const std::string& transport, const std::string& path);
  void failed(const std::string& transport, const std::string& why);
  void staged(const std::string& transport, const std::string& why);
  void stagedHere(const std::string& transport, const std::string& why);

  // A region on that kind of device was opened over `path`. Logs, once for each kind and path, that
  // a faster path was there and why it is not used: a warning, or where the caller asked for it,
  // for information. `slower` is RemoteMemory::slowerBecause(). Answers whether it logged.
  bool tellIfSlow(const std::string& peer, DeviceKind kind, const std::string& path,
                  const PassedOver& passed, const std::string& slower);

 private:
  bool first(const std::string& about);

  mutable std::mutex mutex_;
  std::map<std::string, Note> notes_;  // guarded by mutex_, by transport
  std::set<std::string> told_;         // guarded by mutex_
};

}  // namespace hmc
