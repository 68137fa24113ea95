#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/lease.h"
#include "control/message.h"
#include "hmc/deadline.h"
#include "hmc/result.h"

namespace hmc::control {

// Who a participant is. The id is random and new for every Node, so a process that restarts under
// its old name is somebody else: a new incarnation.
struct Identity {
  std::string id;          // 16 bytes
  std::string name;        // what its user calls it, for sentences
  std::string attributes;  // bytes that node/ writes and reads; control only carries them
};

// An authenticated conversation with one peer. Safe from any thread. It ends once, for one reason:
// we close it, the peer says goodbye, its process dies, it breaks the protocol, or nothing was
// heard from it for the lease's length. What it had sent before stays readable.
class Channel {
 public:
  virtual ~Channel() = default;

  virtual const Identity& peer() const = 0;
  // True on the side that dialled.
  virtual bool initiator() const = 0;
  // The addresses of this conversation; "127.0.0.1" and port 0 for a unix socket.
  virtual const std::string& localHost() const = 0;
  virtual const std::string& remoteHost() const = 0;
  virtual uint16_t remotePort() const = 0;
  virtual const std::shared_ptr<Lease>& lease() const = 0;
  // 32 bytes of this channel's own, the same at both ends and known to nobody who lacks the secret.
  // Without a secret, to nobody who did not read the handshake.
  virtual const std::string& credentials() const = 0;

  // The peer has proven that it belongs to us: it knows the secret, has a certificate that TLS
  // accepts, or is of our user. Else it may be anybody.
  virtual bool proven() const = 0;

  // Ok while it lasts, then why it ended.
  virtual Status status() const = 0;
  // It ended without a goodbye and not because of silence: on one host the peer's process is gone.
  virtual bool vanished() const = 0;

  // Queued at the peer when this returns or soon after, in order with everything else that one
  // thread sends. Blocks only for back-pressure.
  virtual Status send(MessageKind kind, uint16_t flags, std::string_view payload,
                      Deadline deadline) = 0;

  // Sends if that takes no waiting. False says nothing about why not: send() does.
  virtual bool trySend(MessageKind kind, uint16_t flags, std::string_view payload) = 0;

  // The oldest message of those kinds, waiting for it until the deadline. When the channel has
  // ended and nothing is queued: the reason of the end.
  virtual Result<Message> receive(KindSet kinds, Deadline deadline) = 0;

  // The same for one of exactly `size` bytes that is there, or comes within a microsecond or two.
  // False says nothing about why: receive() does.
  virtual bool tryReceive(MessageKind kind, void* data, size_t size) = 0;

  // Is a message of those kinds waiting?
  virtual bool unread(KindSet kinds = KindSet::all()) const = 0;

  // A message that ControlEvents::note() brought, of that size, has reached its user. The peer
  // waits for this when much is under way.
  virtual void noteTaken(size_t size) = 0;
  // What was received and nobody has asked for, notes aside, takes about so much memory.
  virtual size_t unreadBytes() const = 0;

  // Asks the peer's ControlEvents::answer(), which runs on its control thread, and waits. `stop`
  // ends the waiting with cancelled; the peer may answer all the same.
  virtual Result<std::string> call(uint16_t method, std::string_view request, Deadline deadline,
                                   const std::stop_token& stop = {}) = 0;

  // The same without waiting. `then` gets the answer, or why none comes: once, from the control
  // thread, from whoever ends the channel, or from within this call. It must not block.
  using Answered = std::function<void(Result<std::string>)>;
  virtual void ask(uint16_t method, std::string_view request, Answered then) = 0;

  // Says goodbye and ends the channel; what was sent before is delivered first. Does not block.
  virtual void close(const Status& why) = 0;
};

}  // namespace hmc::control
