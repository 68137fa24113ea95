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

// The bytes of a message, until UCX has sent them.
struct SentMessage {
  const Api& api;
  std::string bytes;
  static void onSent(void* request, ucs_status_t, void* message) {
    std::unique_ptr<SentMessage> self(static_cast<SentMessage*>(message));
    self->api.ucp_request_free(request);
  }
};

}  // namespace

Result<std::unique_ptr<ControlWorker>> ControlWorker::create(Context& context) {
  HMC_ASSIGN(auto worker, Worker::create(context));
  std::unique_ptr<ControlWorker> made(new ControlWorker(std::move(worker)));
  HMC_TRY(made->worker_->receive(kMessage, &ControlWorker::onMessage, made.get()));
  return made;
}

Result<PeerService*> ControlWorker::connect(const std::string& address) {
  std::unique_ptr<PeerService>& known = peers_[address];
  if (!known) {
    auto made = std::make_unique<PeerService>(changed_);
    auto endpoint = worker_->connect(address, *made);
    if (!endpoint.ok()) {
      peers_.erase(address);
      return endpoint.status();
    }
    made->endpoint = *endpoint;
    made->number = randomU64();
    made->lane = laneOf(worker_->api(), made->endpoint);
    known = std::move(made);
  }
  if (!known->answered) send(known->endpoint, kHello, known->number);
  return known.get();
}

void ControlWorker::sendGoodbye(const PeerService& peer, uint64_t link) {
  send(peer.endpoint, kGoodbye, link);
}

void ControlWorker::send(ucp_ep_h endpoint, uint8_t kind, uint64_t number) {
  auto message = std::make_unique<SentMessage>(
      SentMessage{worker_->api(), Writer().u8(kind).u64(number).take()});
  static const Bytes kNothing;
  const ucs_status_ptr_t request =
      worker_->send(endpoint, kMessage, message->bytes.data(), message->bytes.size(), kNothing,
                    &SentMessage::onSent, message.get());
  if (UCS_PTR_IS_PTR(request)) (void)message.release();
}

ucs_status_t ControlWorker::onMessage(void* worker, const void* header, size_t headerSize, void*,
                                      size_t, const ucp_am_recv_param_t* param) {
  auto* self = static_cast<ControlWorker*>(worker);
  Reader reader(std::string_view(static_cast<const char*>(header), headerSize));
  const uint8_t kind = reader.u8();
  const uint64_t number = reader.u64();
  if (!reader.finish("a ucx control message").ok()) return UCS_OK;
  if (kind == kGoodbye) self->goodbyes_.push_back(number);
  if (kind == kHelloAnswer) {
    for (auto& [address, peer] : self->peers_) {
      if (peer->number == number) peer->answered = true;
    }
    self->changed_ = true;
  }
  if (kind == kHello && (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0) {
    self->send(param->reply_ep, kHelloAnswer, number);
  }
  return UCS_OK;
}

void ControlWorker::dropLost() {
  std::erase_if(peers_, [&](auto& entry) {
    if (entry.second->lost == UCS_OK) return false;
    worker_->drop(entry.second->endpoint);
    return true;
  });
}

bool ControlWorker::awaitsAnswer() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const auto& entry) {
    return !entry.second->answered && entry.second->lost == UCS_OK;
  });
}

}  // namespace hmc::ucx
