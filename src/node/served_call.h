#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "control/channel.h"
#include "hmc/result.h"
#include "node/peer_state.h"

namespace hmc {

// The peer's user calls ours: name and bytes go over, bytes come back.
inline constexpr uint16_t kUserCall = 16;
std::string encodeUserCall(const std::string& name, const std::string& bytes);

// A peer's call that our user has to answer. One that is destroyed without an answer is refused.
// Safe from any thread.
class ServedCall {
 public:
  // Unanswered ones of a peer take so much memory at the most.
  static constexpr size_t kMostUnanswered = size_t{64} << 20;

  // Refused when the peer has too many unanswered ones.
  static Result<std::shared_ptr<ServedCall>> accept(const std::shared_ptr<PeerState>& peer,
                                                    std::string_view request);
  ~ServedCall();

  // Where the answer goes; called before anybody else has this.
  void answerTo(control::Channel::Answered reply) { reply_ = std::move(reply); }

  const std::shared_ptr<PeerState>& peer() const { return peer_; }
  const std::string& name() const { return name_; }
  const std::string& bytes() const { return bytes_; }
  // The first answer counts.
  Status answer(Result<std::string> answer);

 private:
  ServedCall(std::shared_ptr<PeerState> peer, std::string name, std::string bytes, size_t cost);

  const std::shared_ptr<PeerState> peer_;
  const std::string name_;
  const std::string bytes_;
  const size_t cost_;
  control::Channel::Answered reply_;
  std::atomic<bool> answered_{false};
};

}  // namespace hmc
