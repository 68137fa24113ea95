#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transport/ucx/worker.h"

namespace hmc::ucx {

// The service of a peer's transport, which all links to that peer share. Its endpoint stays until
// it fails: UCX (1.13 to 1.22, over tcp) crashes on what arrives for one that was closed.
struct PeerService final : EndpointOwner {
  explicit PeerService(bool& flag) : changed(flag) {}
  void endpointFailed(ucs_status_t status) override {
    lost = status;
    changed = true;
  }

  bool& changed;
  ucp_ep_h endpoint = nullptr;
  std::string lane;
  ucs_status_t lost = UCS_OK;
  uint64_t number = 0;    // what its answer to our hello calls it
  bool answered = false;  // our last hello
};

// The worker for control messages between our service and those of our peers. Its connections also
// tell when a peer dies. One thread uses it at a time.
class ControlWorker final : public Worker {
 public:
  // Must not outlive `context`.
  static Result<std::unique_ptr<ControlWorker>> create(Context& context);

  bool settled() const override;
  // The service at that address, to which a hello is sent unless it has answered one.
  Result<PeerService*> connect(const std::string& address);
  void sendGoodbye(const PeerService& peer, uint64_t link);
  // Forgets the peers that are lost.
  void dropLost();

  // For the owner to take from.
  std::vector<uint64_t> goodbyes;  // links whose peer has said it
  bool changed = false;            // a peer has answered or was lost

 private:
  friend class Worker;
  explicit ControlWorker(Context& context) : Worker(context) {}
  void received(const Message& message);
  void send(ucp_ep_h endpoint, uint8_t kind, uint64_t number);

  std::map<std::string, std::unique_ptr<PeerService>> peers_;  // by address
};

}  // namespace hmc::ucx
