#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
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
class ControlWorker {
 public:
  // Must not outlive `context`.
  static Result<std::unique_ptr<ControlWorker>> create(Context& context);

  const std::string& address() const { return worker_->address(); }
  int fd() const { return worker_->fd(); }
  bool progress() { return worker_->progress(); }
  bool arm() { return worker_->arm(); }

  // The service at that address, to which a hello is sent unless it has answered one.
  Result<PeerService*> connect(const std::string& address);
  void sendGoodbye(const PeerService& peer, uint64_t link);

  // Links whose peer has said goodbye since the last call.
  std::vector<uint64_t> takeGoodbyes() { return std::exchange(goodbyes_, {}); }
  bool hasGoodbyes() const { return !goodbyes_.empty(); }
  // A peer has answered or was lost since takeChanged().
  bool changed() const { return changed_; }
  bool takeChanged() { return std::exchange(changed_, false); }
  // Forgets the peers that are lost.
  void dropLost();
  // A peer has not answered yet.
  bool awaitsAnswer() const;

 private:
  explicit ControlWorker(std::unique_ptr<Worker> worker) : worker_(std::move(worker)) {}
  static ucs_status_t onMessage(void* self, const void* header, size_t headerSize, void* data,
                                size_t size, const ucp_am_recv_param_t* param);
  void send(ucp_ep_h endpoint, uint8_t kind, uint64_t number);

  const std::unique_ptr<Worker> worker_;
  std::map<std::string, std::unique_ptr<PeerService>> peers_;  // by address
  std::vector<uint64_t> goodbyes_;
  bool changed_ = false;
};

}  // namespace hmc::ucx
