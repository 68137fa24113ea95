#pragma once

#include <hmc/node.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace hmc::test {

// One of two Nodes that do all that can wait to each other.
class Caller {
 public:
  Caller(const std::string& transport, std::chrono::milliseconds lease, const std::string& host);

  // "ADDRESS GRANT", for the other one's meet().
  const std::string& introduction() const { return introduction_; }
  Status meet(const std::string& introduction);

  Node node;
  std::string address;  // the other one's
  std::optional<hmc::Peer> peer;
  std::optional<Grant> grant;
  std::optional<RemoteRegion> remote;
  LocalRegion memory;  // what the other one moves bytes to and from
  LocalRegion local;
  // Of one thread each.
  std::optional<LocalRegion> lent;
  std::optional<RemoteRegion> opened;

 private:
  std::string introduction_;
};

// When a call that can wait has ended, at the latest.
enum class Ends {
  atDeadline,
  // A transfer that is cut off is first fenced: by the peer's answer, or after twice the lease.
  atFence,
};

struct EveryCall {
  const char* name;
  Ends ends;
  Status (*run)(Caller&, Timeout);
};

// All calls of a Node and its handles that can wait, but close(), which ends the others.
const std::vector<EveryCall>& everyCall();

}  // namespace hmc::test
