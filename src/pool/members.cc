#include "pool/members.h"

#include <poll.h>

#include <algorithm>

#include "base/error.h"
#include "base/host_id.h"
#include "base/log.h"
#include "base/thread.h"
#include "memory/backends.h"

namespace hmc::pool {

Members::Members(NodeImpl& node, const AddressSpace& addresses)
    : node_(node),
      addresses_(addresses),
      capacity_(addresses.layout().capacity),
      host_(hostId()),
      layout_(addresses.layout().encode()),
      slots_(std::make_unique<Slot[]>(size_t{2} * capacity_)),
      early_(capacity_) {}

Members::~Members() {
  closeAll();
  for (const Region& own : attached_) {
    if (own.ptr) (void)(*findBackend(own.device))->detach(own);
  }
}

Status Members::attachOwn(const Own& own) {
  {
    std::lock_guard lock(slotMutex_);
    own_ = own;
  }
  for (PoolSpace space : kSpaces) {
    const auto& memory = own[indexOf(space)];
    Region& here = attached_[indexOf(space)];
    char* const place = addresses_.at(space, rank_);
    if (!memory) continue;
    HMC_ASSIGN(Backend * backend, findBackend(memory->region().device));
    if (here.ptr && here.ptr != place) {
      HMC_TRY(backend->detach(here));
      here = {};
    }
    if (!here.ptr) {
      HMC_ASSIGN(const auto share, backend->share(memory->region(), ShareFor::process));
      HMC_ASSIGN(here, backend->attach(share, place));
    }
    std::lock_guard lock(slotMutex_);
    slot({space, rank_, 0})->open({memory, nullptr, here.size, here.device, here.at(0)});
  }
  return Status();
}

Status Members::begin(std::unique_ptr<store::Group> group, const Own& own) {
  rank_ = group->self().rank;
  events_.open();
  HMC_TRY(attachOwn(own));
  const auto present = group->members();
  {
    std::lock_guard lock(mutex_);
    group_ = std::move(group);
    member_.store(true, std::memory_order_release);
  }
  for (const auto& member : present) came(member, Source::watch);
  HMC_ASSIGN(thread_, startThread("hmc-pool", [this](const std::stop_token& stop) { run(stop); }));
  return Status();
}

Status Members::join(std::unique_ptr<store::Group> group, const Own& own, Deadline deadline) {
  Status begun = begin(std::move(group), own);
  if (!begun.ok()) {
    closeAll();
    std::lock_guard lock(mutex_);
    group_.reset();
    member_.store(false, std::memory_order_release);
    return begun;
  }
  awaitNeighbours(earlier(deadline, node_.lease()));
  std::lock_guard lock(mutex_);
  joined_ = true;
  changed_.notify_all();
  for (auto& [rank, other] : others_) {
    if (!other.reaching) announceLocked(other);
  }
  return Status();
}

bool Members::neighboursSettledLocked() const {
  return std::all_of(others_.begin(), others_.end(),
                     [](const auto& entry) { return entry.second.settled(); });
}

Status Members::awaitRanks(uint32_t count, Deadline deadline) {
  std::unique_lock lock(mutex_);
  auto complete = [&] { return others_.size() + 1 >= count && neighboursSettledLocked(); };
  if (changed_.wait_until(lock, deadline.at(), complete)) return Status();
  std::string missing;
  for (uint32_t rank = 0; rank < count; ++rank) {
    auto found = others_.find(rank);
    if (rank == rank_ || (found != others_.end() && found->second.settled())) continue;
    missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
  }
  return error(Code::deadlineExceeded, "of {} ranks these did not come in time: {}", count,
               missing);
}

std::set<uint32_t> Members::lost() const {
  std::lock_guard lock(mutex_);
  return lost_;
}

std::stop_token Members::nextDeparture() const {
  std::lock_guard lock(mutex_);
  return departure_.get_token();
}

std::string Members::signature() const {
  std::lock_guard lock(mutex_);
  std::string combined = group_ ? group_->self().incarnation : std::string();
  for (const auto& [rank, other] : others_) {
    const std::string& one = other.member.incarnation;
    for (size_t i = 0; i < std::min(combined.size(), one.size()); ++i)
      combined[i] = static_cast<char>(combined[i] ^ one[i]);
  }
  return combined;
}

// Members of this host that do not answer may be stopped; they must not hold up anybody.
void Members::awaitNeighbours(Deadline deadline) {
  std::string late;
  std::unique_lock lock(mutex_);
  if (changed_.wait_until(lock, deadline.at(), [&] { return neighboursSettledLocked(); })) return;
  for (const auto& [rank, other] : others_) {
    if (other.here && !(other.reached && other.mappedUs))
      late += (late.empty() ? "" : ", ") + std::to_string(rank);
  }
  lock.unlock();
  logWarn("joined the pool before rank {} had mapped our memory: it does not answer", late);
}

std::shared_ptr<store::Group> Members::group() const {
  std::lock_guard lock(mutex_);
  return group_;
}

Status Members::status() const {
  const auto group = this->group();
  return group ? group->status() : error(Code::disconnected, "this process is not in the pool");
}

void Members::run(const std::stop_token& stop) {
  auto wake = EventFd::create("a pool");
  if (!wake.ok()) return;
  const std::stop_callback stopping(stop, [&] { wake->signal(); });
  const auto groupFd = group_->eventFd();
  const auto peerFd = node_.peerEventFd();
  const auto noteFd = node_.noteFd();
  if (!groupFd.ok() || !peerFd.ok() || !noteFd.ok()) return;
  pollfd watched[] = {
      {wake->get(), POLLIN, 0}, {*groupFd, POLLIN, 0}, {*peerFd, POLLIN, 0}, {*noteFd, POLLIN, 0}};
  while (!stop.stop_requested()) {
    (void)poll(watched, std::size(watched), -1);
    if (stop.stop_requested()) return;
    if (watched[1].revents != 0) hearGroup();
    const Status standing = group_->status();
    if (!standing.ok() && standing.code() != Code::cancelled) return expelled(standing);
    if (watched[2].revents != 0) hearPeers();
    if (watched[3].revents != 0) hearNotes();
  }
}

void Members::hearGroup() {
  for (auto event = group_->nextEvent(Deadline::now()); event.ok();
       event = group_->nextEvent(Deadline::now())) {
    const store::Member& member = event->member;
    if (event->kind == store::GroupEvent::Kind::joined) {
      came(member, Source::watch);
      continue;
    }
    {
      std::lock_guard lock(mutex_);
      gone_[member.rank] = member.incarnation;
    }
    went(member.rank, member.incarnation,
         event->said ? Status()
                     : error(Code::disconnected,
                             "rank {} did not say that it leaves: its process ended, was stopped "
                             "or cut off",
                             member.rank));
  }
}

void Members::hearPeers() {
  for (auto event = node_.nextPeerEvent(Deadline::now()); event.ok();
       event = node_.nextPeerEvent(Deadline::now())) {
    if (!event->why.ok()) lostPeer(*event->peer, event->why);
  }
}

void Members::hearNotes() {
  for (auto note = node_.nextNote(Deadline::now()); note.ok();
       note = node_.nextNote(Deadline::now())) {
    if (note->bytes != kMappedNote) continue;
    const std::string& node = note->peer->channel().peer().id;
    std::lock_guard lock(mutex_);
    auto found = std::find_if(others_.begin(), others_.end(),
                              [&](const auto& entry) { return entry.second.record.node == node; });
    if (found != others_.end()) {
      found->second.mappedUs = true;
    } else if (note->peer->channel().status().ok()) {
      early_.add(node);
    }
    changed_.notify_all();
  }
}

Members::Other* Members::findLocked(uint32_t rank, const std::string& incarnation) {
  auto found = others_.find(rank);
  if (found == others_.end() || found->second.member.incarnation != incarnation) return nullptr;
  return &found->second;
}

namespace {

bool isThere(const std::map<uint32_t, std::string>& incarnations, const store::Member& member) {
  auto found = incarnations.find(member.rank);
  return found != incarnations.end() && found->second == member.incarnation;
}

}  // namespace

void Members::came(const store::Member& member, Source source) {
  if (member.rank == rank_ || member.rank >= capacity_) return;
  auto record = Record::decode(member.description);
  Status bad = record.status();
  if (record.ok() && record->layout != layout_) {
    bad = error(Code::failed, "its slots lie at other addresses than ours");
  }
  if (!bad.ok()) {
    logWarn("rank {} of the pool is left out: {}", member.rank, bad.message());
    return;
  }
  std::string before;
  {
    std::lock_guard lock(mutex_);
    auto found = others_.find(member.rank);
    if (found != others_.end()) before = found->second.member.incarnation;
    // The store may not know yet that it is dead.
    if (isThere(dead_, member)) return;
    // While we asked, the watch went on.
    if (source == Source::asked && (!before.empty() || isThere(gone_, member))) return;
  }
  if (before == member.incarnation) return;
  if (!before.empty()) went(member.rank, before, error(Code::disconnected, "it was restarted"));
  const bool here = !host_.empty() && record->host == host_;
  {
    std::lock_guard lock(mutex_);
    if (source == Source::asked && (others_.contains(member.rank) || isThere(gone_, member)))
      return;
    lost_.erase(member.rank);
    Other& other = others_[member.rank];
    other.member = member;
    other.record = *std::move(record);
    other.here = here;
    other.reaching = here;
    other.mappedUs = early_.take(other.record.node);
    if (!here && joined_) announceLocked(other);
    changed_.notify_all();
  }
  if (here) reachLater(member.rank, member.incarnation);
}

// Whoever hears of a member of this host may use pointers into its slots: they are mapped by then.
void Members::announceLocked(Other& other) {
  if (other.announced) return;
  other.announced = true;
  events_.push({PoolEvent::Kind::joined, other.member.rank, Status()});
}

std::vector<uint32_t> Members::ranks() const {
  std::lock_guard lock(mutex_);
  std::vector<uint32_t> all;
  if (group_) all.push_back(rank_);
  for (const auto& [rank, other] : others_) all.push_back(rank);
  std::sort(all.begin(), all.end());
  return all;
}

Result<PoolSlot> Members::describe(PoolSpace space, uint32_t rank) const {
  if (rank >= capacity_) {
    return error(Code::outOfRange, "rank {} cannot be: the pool has room for {}", rank, capacity_);
  }
  PoolSlot described{rank, space, addresses_.at(space, rank), 0, {}, false};
  {
    const SlotUse use(slot({space, rank, 0}));
    if (use) {
      described.size = use->size;
      described.device = use->device;
      described.mapped = use->data != nullptr;
      return described;
    }
  }
  std::lock_guard lock(mutex_);
  auto found = others_.find(rank);
  if (found == others_.end() && rank != rank_) return notHere(rank);
  if (found != others_.end()) {
    described.size = found->second.record.sizes[indexOf(space)];
    if (space == PoolSpace::device) described.device.kind = found->second.record.device;
  }
  return described;
}

}  // namespace hmc::pool
