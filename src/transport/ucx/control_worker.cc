#include "transport/ucx/control_worker.h"

#include <algorithm>

#include "base/codec.h"
#include "base/random.h"
#include "transport/ucx/lanes.h"

namespace hmc::ucx {

namespace {

constexpr unsigned kMessage = 0;  // the only kind of active message

// A hello brings up the connection that tells when the peer dies. It carries the number of a
// PeerService, and so does the answer; a goodbye carries the peer's number of a link.
constexpr uint8_t kHello = 1;
constexpr uint8_t kHelloAnswer = 2;
constexpr uint8_t kGoodbye = 3;

}  // namespace

Result<std::unique_ptr<ControlWorker>> ControlWorker::create(Context& context) {
  std::unique_ptr<ControlWorker> made(new ControlWorker(context));
  HMC_TRY(made->open(kMessage, *made));
  return made;
}

Result<PeerService*> ControlWorker::connect(const std::string& address) {
  std::unique_ptr<PeerService>& known = peers_[address];
  if (!known) {
    auto made = std::make_unique<PeerService>(changed);
    auto endpoint = Worker::connect(address, *made);
    if (!endpoint.ok()) {
      peers_.erase(address);
      return endpoint.status();
    }
    made->endpoint = *endpoint;
    made->number = randomU64();
    made->lane = laneOf(api(), made->endpoint);
    known = std::move(made);
  }
  if (!known->answered) send(known->endpoint, kHello, known->number);
  return known.get();
}

void ControlWorker::sendGoodbye(const PeerService& peer, uint64_t link) {
  send(peer.endpoint, kGoodbye, link);
}

void ControlWorker::send(ucp_ep_h endpoint, uint8_t kind, uint64_t number) {
  post(endpoint, kMessage, Writer().u8(kind).u64(number).bytes());
}

void ControlWorker::received(const Message& message) {
  Reader reader(message.header);
  const uint8_t kind = reader.u8();
  const uint64_t number = reader.u64();
  if (!reader.finish("a ucx control message").ok()) return;
  if (kind == kGoodbye) goodbyes.push_back(number);
  if (kind == kHelloAnswer) {
    for (auto& [address, peer] : peers_) {
      if (peer->number == number) peer->answered = true;
    }
    changed = true;
  }
  if (kind == kHello && message.replyTo) send(message.replyTo, kHelloAnswer, number);
}

void ControlWorker::dropLost() {
  std::erase_if(peers_, [&](auto& entry) {
    if (entry.second->lost == UCS_OK) return false;
    drop(entry.second->endpoint);
    return true;
  });
}

bool ControlWorker::settled() const {
  return std::all_of(peers_.begin(), peers_.end(), [](const auto& entry) {
    return entry.second->answered || entry.second->lost != UCS_OK;
  });
}

}  // namespace hmc::ucx
