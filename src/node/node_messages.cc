#include "base/error.h"
#include "base/log.h"
#include "node/node_impl.h"

// What peers tell our user: notes, calls, and that they come and go.

namespace hmc {

namespace {
// Unread notes of peers that are gone.
constexpr size_t kMostNotesLeft = size_t{64} << 20;
}  // namespace

Status NodeImpl::nothingCame(const char* what) const {
  HMC_TRY(checkUsable());
  return error(Code::deadlineExceeded, "no {} in time", what);
}

Result<NodeImpl::NoteFrom> NodeImpl::nextNote(Deadline deadline) {
  if (fork_.inChild()) return ForkGuard::refusal();
  if (auto note = notes_.pop(deadline)) {
    note->peer->channel().noteTaken(note->bytes.size());
    return *std::move(note);
  }
  return nothingCame("notification arrived");
}

Result<std::shared_ptr<ServedCall>> NodeImpl::nextCall(Deadline deadline) {
  if (fork_.inChild()) return ForkGuard::refusal();
  if (auto call = calls_.pop(deadline)) return *std::move(call);
  return nothingCame("call arrived");
}

void NodeImpl::watchPeers() {
  std::lock_guard lock(mutex_);
  if (peersWatched_) return;
  peersWatched_ = true;
  for (const auto& peer : peers_) peerEvents_.push({peer, Status()});
}

Result<NodeImpl::PeerNews> NodeImpl::nextPeerEvent(Deadline deadline) {
  if (fork_.inChild()) return ForkGuard::refusal();
  watchPeers();
  if (auto event = peerEvents_.pop(deadline)) return *std::move(event);
  return nothingCame("peer came or went");
}

Result<int> NodeImpl::noteFd() {
  if (fork_.inChild()) return ForkGuard::refusal();
  return notes_.fd();
}

Result<int> NodeImpl::callFd() {
  if (fork_.inChild()) return ForkGuard::refusal();
  return calls_.fd();
}

Result<int> NodeImpl::peerEventFd() {
  if (fork_.inChild()) return ForkGuard::refusal();
  watchPeers();
  return peerEvents_.fd();
}

void NodeImpl::takeCall(const std::shared_ptr<PeerState>& peer, std::string_view request,
                        control::Channel::Answered reply) {
  auto call = ServedCall::accept(peer, request);
  if (!call.ok()) return reply(call.status());
  (*call)->answerTo(std::move(reply));
  calls_.push(*std::move(call));
}

void NodeImpl::note(const std::shared_ptr<control::Channel>& channel, std::string payload) {
  auto peer = find(channel.get());
  if (!peer) return;
  notes_.push({std::move(peer), std::move(payload)});
}

// Peers may come and go for ever, and each may leave notes.
void NodeImpl::dropOldNotes() {
  size_t bytes = 0;
  auto hasLeft = [](const NoteFrom& note) { return !note.peer->channel().status().ok(); };
  notes_.look([&](const NoteFrom& note) { bytes += hasLeft(note) ? note.bytes.size() + 64 : 0; });
  if (bytes <= kMostNotesLeft) return;
  logWarn("{} bytes of notes of peers that left were not read: the oldest are dropped", bytes);
  notes_.erase([&](const NoteFrom& note) {
    if (bytes <= kMostNotesLeft || !hasLeft(note)) return false;
    bytes -= note.bytes.size() + 64;
    return true;
  });
}

}  // namespace hmc
