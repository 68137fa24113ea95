#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd_exchange.h"
#include "base/loop.h"
#include "base/tls_context.h"
#include "control/channel.h"
#include "hmc/deadline.h"
#include "hmc/result.h"

namespace hmc::control {

// What happens on the control plane, told to node/. All of it runs on the control thread and must
// not block on a peer.
class ControlEvents {
 public:
  virtual ~ControlEvents() = default;
  // A peer is there: authenticated, known under channel->peer(). On the accepting side this comes
  // before the dialler learns that it is welcome; on the dialling side before connect() returns. A
  // Status that is not ok refuses the peer, with that sentence.
  virtual Status joined(const std::shared_ptr<Channel>& channel) = 0;
  // A peer that is already connected dialled again, with these attributes. Its old channel serves.
  virtual Status joinedAgain(const std::shared_ptr<Channel>& channel,
                             const std::string& attributes) = 0;
  virtual void left(const std::shared_ptr<Channel>& channel, const Status& why) = 0;
  // Channel::call() of the peer. `reply` is called once: from here, or later from any thread.
  virtual void answer(const std::shared_ptr<Channel>& channel, uint16_t method,
                      std::string_view request, Channel::Answered reply) = 0;
  // A message of kind `note` arrived; it is not queued in the channel.
  virtual void note(const std::shared_ptr<Channel>& channel, std::string payload) = 0;
};

struct ControlOptions {
  std::string name;    // our Identity::name
  std::string secret;  // both sides must have the same; empty on both sides means none
  // In the place of a secret over loopback; empty: none. See control/security.h.
  std::string cookie{};
  // Without a secret: listens also where other hosts reach it.
  bool insecure = false;
  std::chrono::milliseconds heartbeat{1000};
  std::chrono::milliseconds lease{10000};  // of a channel: the shorter of both sides'
  // How long a dialler may take to say who it is.
  std::chrono::milliseconds handshake{5000};
  // How long the resolver may take for the name of a listener's host: as long as it asks a server
  // that does not answer, twice.
  std::chrono::milliseconds resolver{10000};
  // Every connection is encrypted, and a peer that does not do so is refused. Null: none is.
  std::shared_ptr<TlsContext> tls{};
  // Messages to peers of this host go through shared memory, if those want it too.
  bool ring = true;
};

// The control plane of one Node: its listeners, its channels and the one thread that serves them.
// Addresses are "tcp://host:port" ("tcp://[::1]:5001" for IPv6; port 0 picks one) and
// "unix:///path".
class Control {
 public:
  // `fds` and `events` must outlive it.
  static Result<std::unique_ptr<Control>> create(const ControlOptions& options, FdExchange& fds,
                                                 ControlEvents& events);
  // The same for who wants no rings, whatever the options say.
  static Result<std::unique_ptr<Control>> create(const ControlOptions& options,
                                                 ControlEvents& events);
  virtual ~Control() = default;  // says goodbye everywhere, stops the thread

  virtual const std::string& id() const = 0;
  // The control thread, for tasks and timers of our owner.
  virtual Loop& loop() = 0;

  // Our Identity::attributes for handshakes from now on.
  virtual void setAttributes(std::string attributes) = 0;

  // Opens a listener and answers its address with the port that was picked. A port or path in use
  // is alreadyExists; a unix path that nobody listens on any more is taken over.
  virtual Result<std::string> listen(const std::string& address) = 0;
  virtual Status closeListener(const std::string& address) = 0;

  // Dials a listener and returns when both sides know each other. When the two are connected
  // already, in either direction, answers that channel, and the peer sees joinedAgain(). Two that
  // dial each other at the same time end with one channel.
  virtual Result<std::shared_ptr<Channel>> connect(const std::string& address,
                                                   const std::string& attributes,
                                                   Deadline deadline) = 0;
};

}  // namespace hmc::control
