#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "control/channel.h"

namespace hmc {

// Tells the peer that our end of a link has ended, through the control connection. There it comes
// before every later answer to a heartbeat, so such an answer cannot renew the lease for that link.
class LinkEnd {
 public:
  explicit LinkEnd(std::shared_ptr<control::Channel> channel) : channel_(std::move(channel)) {}

  // Which link it is, for PeerState::dropLink(): the transport's name and the addresses of both
  // ends. As long as the peer's is not known there is nobody to tell.
  void prepare(const std::string& transport, const std::string& ours, const std::string& theirs);
  // From any thread, also with the transport's locks held.
  void say();

 private:
  void send();

  const std::shared_ptr<control::Channel> channel_;
  std::mutex mutex_;
  std::string request_;  // guarded by mutex_, as the next one
  bool ended_ = false;
};

}  // namespace hmc
