#include "api/sessions.h"

#include "base/error.h"
#include "base/futex.h"
#include "base/log.h"

namespace hmc {

namespace {

// What clients ask of servers, in the numbers that the Node leaves free.
constexpr uint16_t kLeave = 7;
constexpr uint16_t kStage = 8;
constexpr const char* kConnected = "connected";
constexpr const char* kWrote = "wrote";

// Peers whose messages nobody asks for are forgotten, oldest first.
constexpr size_t kMostDeparted = 1024;
constexpr size_t kMostDepartedBytes = size_t{64} << 20;

}  // namespace

void Sessions::tell(PeerState& server, ClientStage stage) {
  server.channel().ask(kStage, stage == ClientStage::wrote ? kWrote : kConnected,
                       [](const Result<std::string>&) {});
}

void Sessions::stayWhileRead(PeerState& server, Deadline deadline) {
  constexpr std::chrono::seconds kSoon{1};
  constexpr std::chrono::milliseconds kPause{5};
  static const std::atomic<uint32_t> kNobodyWakesThis{0};
  while (!deadline.passed()) {
    auto answer = server.channel().call(kLeave, "", earlier(deadline, Deadline(kSoon)));
    if (!answer.ok() || answer->empty()) return;
    futexWait(kNobodyWakesThis, 0, earlier(deadline, Deadline(kPause)));
  }
}

ClientStage Sessions::stageOf(const PeerState& client) const {
  std::lock_guard lock(mutex_);
  auto found = stages_.find(&client);
  return found == stages_.end() ? ClientStage::arriving : found->second;
}

Sessions::Reading::Reading(Sessions& sessions, std::string host)
    : sessions_(sessions), host_(std::move(host)) {
  std::lock_guard lock(sessions_.mutex_);
  sessions_.reading_.insert(host_);
}

Sessions::Reading::~Reading() {
  std::lock_guard lock(sessions_.mutex_);
  sessions_.reading_.erase(sessions_.reading_.find(host_));
}

std::shared_ptr<PeerState> Sessions::departed(const NodeImpl::PeerTest& wanted) {
  if (!anyDeparted()) return nullptr;
  std::lock_guard lock(mutex_);
  std::erase_if(departed_, [](const auto& peer) { return !peer->channel().unread(); });
  departedCount_.store(departed_.size(), std::memory_order_release);
  for (const auto& peer : departed_) {
    if (wanted(*peer)) return peer;
  }
  return nullptr;
}

Result<std::string> Sessions::answer(PeerState& peer, uint16_t method, std::string_view request) {
  std::lock_guard lock(mutex_);
  if (method == kLeave) {
    stages_[&peer] = ClientStage::wrote;
    return std::string(reading_.count(peer.channel().remoteHost()) > 0 ? "stay" : "");
  }
  if (method != kStage) return error(Code::unsupported, "there is no request {}", method);
  if (request == kConnected) stages_[&peer] = ClientStage::connected;
  if (request == kWrote) stages_[&peer] = ClientStage::wrote;
  return std::string();
}

void Sessions::left(const std::shared_ptr<PeerState>& peer) {
  std::lock_guard lock(mutex_);
  stages_.erase(peer.get());
  if (peer->channel().unread()) departed_.push_back(peer);
  size_t bytes = 0;
  for (const auto& one : departed_) bytes += one->channel().unreadBytes();
  while (departed_.size() > kMostDeparted || bytes > kMostDepartedBytes) {
    logWarn("{} left {} bytes of messages that nobody received: they are dropped",
            departed_.front()->title(), departed_.front()->channel().unreadBytes());
    bytes -= departed_.front()->channel().unreadBytes();
    departed_.erase(departed_.begin());
  }
  departedCount_.store(departed_.size(), std::memory_order_release);
}

}  // namespace hmc
