#include "transport/verbs/channels.h"

#include <algorithm>

#include "base/error.h"
#include "transport/check.h"

namespace hmc::verbs {

Status Channels::create(Channel::Owner& owner, const Nics& nics, size_t count, Progress& progress) {
  for (size_t i = 0; i < count; ++i) {
    const size_t nic = i % nics.size();
    HMC_ASSIGN(auto made, Channel::create(owner, i, nic, *nics[nic], progress.queues(nic)));
    all_.push_back({std::move(made), {}});
  }
  return Status();
}

Status Channels::connect(const Address& peer) {
  const size_t count = std::min(all_.size(), peer.incoming.size());
  for (size_t i = 0; i < count; ++i) {
    const QpAddress& to = peer.incoming[i];
    HMC_TRY(all_[i].channel->connect(to, peer.ports[to.port]));
  }
  return Status();
}

Channel* Channels::pick() {
  Channel* least = nullptr;
  for (const Entry& entry : all_) {
    Channel& channel = *entry.channel;
    if (channel.hasRoom() && (!least || channel.load() < least->load())) least = &channel;
  }
  if (!least) return nullptr;
  Channel& favourite = (*this)[favourite_];
  if (favourite.hasRoom() && favourite.load() <= least->load() + kUneven) return &favourite;
  favourite_ = least->index();
  return least;
}

size_t Channels::post(std::span<const Op> ops) {
  Channel* channel = pick();
  if (!channel) return 0;
  const size_t started = channel->post(ops);
  refusal_ = channel->refusal();
  return started;
}

Status Channels::resume(Channel& channel) {
  if (channel.up() || !channel.drained()) return Status();
  HMC_TRY(channel.reconnect());
  std::vector<Op>& held = all_[channel.index()].held;
  const size_t count = held.size();
  const size_t started = channel.post(held);
  held.erase(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(started));
  counters_.retries.fetch_add(started, std::memory_order_relaxed);
  HMC_TRY(channel.refusal());
  if (started == count) return Status();
  // They were under way before, so there was room for all of them.
  return error(Code::failed, "an RDMA channel of {} took {} of {} operations after its reset",
               channel.nic().port().name(), started, count);
}

void Channels::stop() {
  for (const Entry& entry : all_) entry.channel->stop();
}

bool Channels::drained() const {
  return std::all_of(all_.begin(), all_.end(),
                     [](const Entry& entry) { return entry.channel->drained(); });
}

bool Channels::holding() const {
  return std::any_of(all_.begin(), all_.end(),
                     [](const Entry& entry) { return !entry.held.empty(); });
}

void Channels::failHeld(const Status& why) {
  for (Entry& entry : all_) {
    for (const Op& op : entry.held) op.completion->fail(why);
    entry.held.clear();
  }
}

bool concernsOneOperation(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_BAD_RESP_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_OP_ERR:
      return true;
    default:
      return false;
  }
}

Status refusal(const Op& op, const ibv_wc& wc, const Library& library) {
  if (wc.status == IBV_WC_REM_ACCESS_ERR || wc.status == IBV_WC_REM_INV_REQ_ERR) {
    return error(Code::notFound,
                 "{} of {} bytes at remote offset {}: the peer's NIC refused it ({}); the peer has "
                 "unregistered that memory",
                 opName(op.kind), op.size, op.remoteOffset, library.ibv_wc_status_str(wc.status));
  }
  return error(Code::failed, "{} of {} bytes at remote offset {}: {}", opName(op.kind), op.size,
               op.remoteOffset, library.ibv_wc_status_str(wc.status));
}

}  // namespace hmc::verbs
