#include "node/peer_state.h"

#include <algorithm>

#include "base/codec.h"
#include "base/error.h"
#include "memory/backends.h"
#include "memory/range_error.h"
#include "node/node_impl.h"

namespace hmc {

namespace {

// So many transfers may be done and kept without a look.
constexpr size_t kFewActive = 16;
// A peer needs one link over a transport, and two for a moment when both sides open one at once.
constexpr size_t kMostLinks = 16;

std::string titleOf(const control::Channel& channel) {
  return fmt::format("{} ({}:{})", channel.peer().name, channel.remoteHost(), channel.remotePort());
}

}  // namespace

PeerState::PeerState(NodeImpl& node, std::shared_ptr<control::Channel> channel,
                     Attributes attributes)
    : node_(node),
      channel_(std::move(channel)),
      title_(titleOf(*channel_)),
      attributes_(std::move(attributes)),
      connections_(node.engines().size()) {}

Attributes PeerState::attributes() const {
  std::lock_guard lock(mutex_);
  return attributes_;
}

void PeerState::setAttributes(Attributes attributes) {
  std::lock_guard lock(mutex_);
  // A dial that names no rank does not take back one that an earlier dial gave.
  if (!attributes.rank) attributes.rank = attributes_.rank;
  attributes_ = std::move(attributes);
}

std::vector<TransportChoice> PeerState::choices() const {
  std::vector<const Transport*> ours;
  for (const auto& engine : node_.engines()) ours.push_back(&engine->transport());
  return chooseTransports(ours, attributes().transports);
}

Result<std::shared_ptr<Link>> PeerState::link(size_t transport, Deadline deadline) {
  std::unique_lock lock(mutex_);
  Connection& connection = connections_[transport];
  bool free = opened_.wait_until(lock, deadline.at(), [&] {
    return !ended_.ok() || !connection.links.empty() || !connection.opening;
  });
  if (!ended_.ok()) return ended_;
  if (!connection.links.empty()) return connection.links.front();
  if (!free) {
    return error(Code::deadlineExceeded, "the {} link to {} was not up in time",
                 node_.engines()[transport]->transport().facts().name, title_);
  }
  connection.opening = true;
  lock.unlock();
  auto made = openLink(transport, deadline);
  lock.lock();
  connection.opening = false;
  opened_.notify_all();
  return made;
}

Result<std::shared_ptr<Link>> PeerState::openLink(size_t transport, Deadline deadline) {
  HMC_ASSIGN(auto made, makeLink(transport));
  Writer request;
  request.string(node_.factsOf(transport).name).string(made.link->address());
  HMC_ASSIGN(std::string address, channel_->call(kOpenLink, request.bytes(), deadline));
  HMC_TRY(made.link->connect(address));
  HMC_TRY(keep(transport, made, address));
  return made.link;
}

Result<PeerState::MadeLink> PeerState::makeLink(size_t transport) {
  LinkOptions options;
  options.initiator = channel_->initiator();
  options.localHost = channel_->localHost();
  options.peerHost = channel_->remoteHost();
  options.lease = channel_->lease();
  options.credentials = channel_->credentials();
  auto end = std::make_shared<LinkEnd>(channel_);
  options.onEnd = [end] { end->say(); };
  HMC_ASSIGN(auto link, node_.engines()[transport]->transport().openLink(options));
  return MadeLink{std::move(link), std::move(end)};
}

Status PeerState::keep(size_t transport, const MadeLink& made, const std::string& address) {
  const auto& link = made.link;
  made.end->prepare(node_.factsOf(transport).name, link->address(), address);
  std::lock_guard lock(mutex_);
  if (!ended_.ok()) {
    link->close(ended_);
    return ended_;
  }
  connections_[transport].links.push_back(link);
  std::erase_if(farEnds_, [](const FarEnd& end) { return end.link.expired(); });
  farEnds_.push_back({link, transport, address});
  opened_.notify_all();
  return Status();
}

void PeerState::retire(const std::shared_ptr<Link>& link) {
  std::lock_guard lock(mutex_);
  for (Connection& connection : connections_) std::erase(connection.links, link);
}

PeerState::FarEnd PeerState::forgetFarEnd(const std::shared_ptr<Link>& link) {
  std::lock_guard lock(mutex_);
  const auto found = std::find_if(farEnds_.begin(), farEnds_.end(), [&](const FarEnd& end) {
    return !end.link.owner_before(link) && !link.owner_before(end.link);
  });
  if (found == farEnds_.end()) return {};
  FarEnd end = std::move(*found);
  farEnds_.erase(found);
  return end;
}

void PeerState::drop(const std::shared_ptr<Link>& link, const Status& why) {
  retire(link);
  const FarEnd far = forgetFarEnd(link);
  if (far.address.empty()) return;
  link->close(why);  // nobody else would, and the peer takes its memory back now
  LinkEnd end(channel_);
  end.prepare(node_.factsOf(far.transport).name, link->address(), far.address);
  end.say();
}

// One of the two addresses need not be the link's alone: over tcp the side that dials has no more
// to say than where it is.
Result<std::string> PeerState::dropLink(std::string_view request) {
  Reader in(request);
  const std::string name = in.string();
  const std::string theirs = in.string();
  const std::string ours = in.string();
  HMC_TRY(in.finish("the end of a link"));
  HMC_ASSIGN(const size_t transport, transportCalled(name));
  std::vector<std::shared_ptr<Link>> links;  // go after the lock
  {
    std::lock_guard lock(mutex_);
    for (const FarEnd& end : farEnds_) {
      if (end.transport == transport && end.address == theirs) links.push_back(end.link.lock());
    }
  }
  const auto found = std::find_if(links.begin(), links.end(), [&](const auto& link) {
    return link && link->address() == ours;
  });
  const std::shared_ptr<Link> dropped = found == links.end() ? nullptr : *found;
  if (!dropped) return std::string();
  retire(dropped);
  forgetFarEnd(dropped);
  dropped->close(error(Code::disconnected, "{} has given this link up", title_));
  return std::string();
}

Result<std::string> PeerState::acceptLink(std::string_view request) {
  Reader in(request);
  std::string name = in.string();
  std::string address = in.string();
  HMC_TRY(in.finish("the request for a link"));
  HMC_ASSIGN(const size_t transport, transportCalled(name));
  HMC_TRY(checkLinks(transport));
  HMC_ASSIGN(auto made, makeLink(transport));
  HMC_TRY(made.link->connect(address));
  HMC_TRY(keep(transport, made, address));
  return made.link->address();
}

Status PeerState::checkLinks(size_t transport) const {
  std::lock_guard lock(mutex_);
  const size_t count = connections_[transport].links.size();
  if (count < kMostLinks) return Status();
  return error(Code::exhausted, "{} has {} {} links with {} already, {} is the most", title_, count,
               node_.factsOf(transport).name, node_.name(), kMostLinks);
}

uint64_t PeerState::regionsReady() const {
  std::lock_guard lock(mutex_);
  return regionsReady_;
}

std::string PeerState::hearRegionReady() {
  std::lock_guard lock(mutex_);
  ++regionsReady_;
  opened_.notify_all();
  return {};
}

Status PeerState::awaitRegion(const std::string& region, uint64_t seen, Deadline deadline) {
  std::unique_lock lock(mutex_);
  const bool news = opened_.wait_until(lock, deadline.at(),
                                       [&] { return !ended_.ok() || regionsReady_ != seen; });
  if (news) return ended_;
  return error(Code::deadlineExceeded, "{} has not registered region \"{}\" in time", title_,
               region);
}

Result<std::string> PeerState::releaseRegion(std::string_view request) {
  Reader in(request);
  const uint64_t number = in.u64();
  HMC_TRY(in.finish("the revocation of a region"));
  enum Moment { asked, released, answered };
  auto moment = std::make_shared<std::atomic<Moment>>(asked);
  regions_.revoke(number, [moment, number, channel = channel_] {
    if (moment->exchange(released) != answered) return;
    channel->ask(kRegionReleased, Writer().u64(number).bytes(), [](const auto&) {});
  });
  return std::string(moment->exchange(answered) == released ? kReleased : "");
}

Result<size_t> PeerState::transportCalled(const std::string& name) const {
  for (size_t i = 0; i < node_.engines().size(); ++i) {
    if (node_.factsOf(i).name != name) continue;
    if (node_.serves(i, *this)) return i;
    return error(Code::permissionDenied,
                 "{} is only for peers that have proven that they know {}'s secret, or where it is "
                 "named in its transports",
                 name, node_.name());
  }
  return error(Code::unsupported, "{} has no {} transport", node_.name(), name);
}

// Looking at all of them costs as much as they are many, so they are looked at when they have
// doubled.
void PeerState::track(const std::shared_ptr<TransferState>& transfer) {
  Active done;
  std::lock_guard lock(mutex_);
  if (!transfer->done()) active_.emplace(transfer.get(), transfer);
  if (active_.size() > lookAt_) {
    done = takeDoneLocked();
    lookAt_ = std::max(kFewActive, 2 * active_.size());
  }
  activeCount_.store(active_.size(), std::memory_order_release);
}

void PeerState::forget(const TransferState& transfer) {
  Active::node_type dropped;
  std::lock_guard lock(mutex_);
  dropped = active_.extract(&transfer);
  activeCount_.store(active_.size(), std::memory_order_release);
}

PeerState::Active PeerState::takeDoneLocked() {
  Active done;
  for (auto one = active_.begin(); one != active_.end();) {
    const auto next = std::next(one);
    if (one->second->done()) done.insert(active_.extract(one));
    one = next;
  }
  activeCount_.store(active_.size(), std::memory_order_release);
  return done;
}

Status PeerState::flush(Deadline deadline) {
  if (quiet()) return Status();
  Active done;
  Active pending;
  {
    std::lock_guard lock(mutex_);
    done = takeDoneLocked();
    pending = active_;
  }
  for (const auto& [key, transfer] : pending) {
    Status status = transfer->engine().wait(*transfer, deadline);
    // A transfer that failed is its owner's news; one that is late must not be overtaken.
    if (!transfer->done()) return status.within("waiting for earlier transfers to " + title_);
  }
  return Status();
}

void PeerState::close(const Status& why) {
  channel_->close(why);
  end(why);
  // They hold us. The rest goes when its owner hears of its end; here it must not go on the control
  // thread, which end() runs on too.
  Active done;
  std::lock_guard lock(mutex_);
  done = takeDoneLocked();
}

void PeerState::end(const Status& why) {
  std::vector<std::shared_ptr<Link>> links;
  std::vector<std::shared_ptr<StageHost>> stages;  // gone after the links that reach them
  {
    std::lock_guard lock(mutex_);
    if (!ended_.ok()) return;
    ended_ = why;
    for (const FarEnd& far : std::exchange(farEnds_, {}))
      if (auto link = far.link.lock()) links.push_back(std::move(link));  // retired ones, too
    for (Connection& connection : connections_) {
      connection.links.clear();
      if (connection.stage) stages.push_back(std::move(connection.stage));
    }
    opened_.notify_all();
  }
  // First: a thread that holds a transfer may be waiting for its link to let it go (ipc's
  // MappingGuard).
  for (const auto& link : links) link->close(why);
  {
    // What still waits for a device would not notice. Our threads take no handle of a transfer: it
    // could become the last one of the Node.
    std::lock_guard lock(mutex_);
    for (const auto& [transfer, handle] : active_) Poster::stop(*handle, why);
  }
  for (const auto& engine : node_.engines()) engine->kick();
}

Result<std::shared_ptr<FarStage>> PeerState::stage(size_t transport, Link& link,
                                                   StagedRegion::What what, Deadline deadline) {
  const std::string request = Writer().string(what.transport).take();
  HMC_ASSIGN(const std::string reply, channel_->call(kOpenStage, request, deadline));
  HMC_ASSIGN(const auto offer, StageOffer::decode(reply));
  HMC_ASSIGN(auto memory, link.importKey(offer.key, deadline, nullptr));
  if (memory->size < offer.slots * StagePool::kSlotSize) {
    return error(Code::outOfRange, "the peer offers {} slots in {} bytes", offer.slots,
                 memory->size);
  }
  std::lock_guard lock(mutex_);
  auto& slots = connections_[transport].farSlots;
  if (!slots) slots = std::make_shared<FarSlots>(offer.slots);
  return std::shared_ptr<FarStage>(
      std::make_shared<StagedRegion>(channel_, std::move(what), slots, std::move(memory)));
}

Result<std::string> PeerState::offerStage(std::string_view request) {
  Reader in(request);
  const std::string name = in.string();
  HMC_TRY(in.finish("the request for slots"));
  HMC_ASSIGN(const size_t transport, transportCalled(name));
  std::shared_ptr<StageHost> stage;
  {
    std::lock_guard lock(mutex_);
    stage = connections_[transport].stage;
  }
  if (!stage) {
    HMC_TRY(node_.slotCopies().prepare());
    HMC_ASSIGN(stage, StageHost::create(node_.engines()[transport]->transport()));
    std::lock_guard lock(mutex_);
    if (!ended_.ok()) return ended_;
    connections_[transport].stage = stage;
  }
  return StageOffer{stage->registration->key(), StageHost::kSlots}.encode();
}

void PeerState::copySlot(std::string_view request, control::Channel::Answered reply) {
  auto copy = startCopy(request);
  if (!copy.ok()) return reply(copy.status());
  copy->reply = std::move(reply);
  node_.slotCopies().add(*std::move(copy));
}

Result<SlotCopies::Copy> PeerState::startCopy(std::string_view request) {
  HMC_ASSIGN(const auto wanted, SlotCopy::decode(request));
  HMC_ASSIGN(const size_t transport, transportCalled(wanted.transport));
  std::shared_ptr<StageHost> stage;
  {
    std::lock_guard lock(mutex_);
    stage = connections_[transport].stage;
  }
  if (!stage)
    return error(Code::invalidArgument, "no slots were asked for over {}", wanted.transport);
  HMC_ASSIGN(auto memory, node_.registered(*this, wanted.region, wanted.number));
  const Region whole = memory->region();
  for (const Block& block : wanted.blocks) {
    if (fits(block.remoteOffset, block.size, whole.size)) continue;
    return rangeError("copy", block.size, "", block.remoteOffset, whole.size)
        .within("region \"" + wanted.region + "\"");
  }
  if (wanted.kind == OpKind::put && memory->access() != Access::readWrite) {
    return error(Code::permissionDenied, "the region \"{}\" is registered for reading only",
                 wanted.region);
  }
  // A process that was stopped in between has been given up by now.
  if (channel_->lease()->expired())
    return error(Code::disconnected, "the copy comes after the end of the lease");
  HMC_ASSIGN(Backend * backend, findBackend(whole.device));
  stage->pinFor(*backend);  // we are the only thread that uses it
  const Region slot = stage->slot(wanted.slot);
  const bool put = wanted.kind == OpKind::put;
  if (stage->copying[wanted.slot].exchange(true)) {
    return error(Code::exhausted, "slot {} has a copy under way: a slot has one at a time",
                 wanted.slot);
  }
  auto pending = PendingCopy::startBatch(
      {put ? whole : slot, put ? slot : whole, wanted.blocks, wanted.bytes(), put});
  if (!pending.ok()) stage->copying[wanted.slot] = false;
  HMC_TRY(pending.status());
  return SlotCopies::Copy{
      std::move(stage), wanted.slot, std::move(memory), *std::move(pending), {}};
}

}  // namespace hmc
