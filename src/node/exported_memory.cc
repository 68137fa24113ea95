#include "node/exported_memory.h"

#include <algorithm>
#include <utility>

#include "base/codec.h"
#include "base/error.h"
#include "base/thread.h"
#include "node/descriptions.h"
#include "node/open_regions.h"
#include "node/peer_state.h"

namespace hmc {

namespace {

// Registering this much with a NIC takes tens of milliseconds; while the control thread does it,
// nobody hears from us.
constexpr size_t kRegisterAtOnce = size_t{64} << 20;

std::string titles(const std::vector<std::shared_ptr<PeerState>>& peers) {
  std::string text;
  for (const auto& peer : peers) text += (text.empty() ? "" : ", ") + peer->title();
  return text;
}

}  // namespace

ExportedMemory::ExportedMemory(const Engines& engines, std::string name, const Region& region,
                               Access access, uint64_t number, Exposure exposure, ArrayType type)
    : engines_(engines),
      name_(std::move(name)),
      region_(region),
      access_(access),
      number_(number),
      type_(std::move(type)),
      registrations_(engines, region, access, exposure) {}

Status ExportedMemory::gone() const {
  return error(Code::notFound, "the region \"{}\" is not registered any more", name_);
}

Result<std::string> ExportedMemory::describe(const std::shared_ptr<PeerState>& opener,
                                             const std::vector<std::string>& transports) {
  std::lock_guard lock(mutex_);
  if (revoked_) return gone();
  std::erase_if(openers_, [&](const auto& one) {
    auto peer = one.lock();
    return !peer || peer == opener;
  });
  openers_.push_back(opener);
  const auto wanted = indexesOf(transports);
  const bool ready =
      std::all_of(wanted.begin(), wanted.end(), [&](size_t i) { return registrations_.has(i); });
  if (!ready && region_.size > kRegisterAtOnce) {
    // Once, however often it asks.
    std::erase_if(awaiting_, [&](const auto& one) { return one.lock() == opener; });
    HMC_TRY(registerLaterLocked(wanted));
    awaiting_.push_back(opener);
    return std::string();
  }
  RegionDescription mine{region_.size, region_.device, access_, number_, {}};
  for (size_t i : wanted) {
    const auto& entry = registrations_.through(i);
    mine.offers.push_back({engines_[i]->transport().facts().name,
                           entry.registration ? entry.registration->key() : "", entry.why});
  }
  return mine.encode();
}

std::vector<size_t> ExportedMemory::indexesOf(const std::vector<std::string>& transports) const {
  std::vector<size_t> indexes;
  for (size_t i = 0; i < engines_.size(); ++i) {
    const std::string& name = engines_[i]->transport().facts().name;
    if (std::find(transports.begin(), transports.end(), name) != transports.end())
      indexes.push_back(i);
  }
  return indexes;
}

Status ExportedMemory::registerLaterLocked(const std::vector<size_t>& transports) {
  toRegister_.insert(transports.begin(), transports.end());
  if (registering_) return Status();
  HMC_ASSIGN(thread_,
             startThread("hmc-register", [this](const std::stop_token&) { registerAll(); }));
  registering_ = true;
  ++users_;  // revoke() waits
  return Status();
}

void ExportedMemory::registerAll() {
  std::unique_lock lock(mutex_);
  while (!toRegister_.empty()) {
    const size_t transport = toRegister_.extract(toRegister_.begin()).value();
    lock.unlock();
    registrations_.through(transport);
    lock.lock();
  }
  registering_ = false;
  const auto awaiting = std::exchange(awaiting_, {});
  lock.unlock();
  for (const auto& weak : awaiting) {
    if (auto peer = weak.lock()) peer->channel().ask(kRegionReady, "", [](const auto&) {});
  }
  lock.lock();
  --users_;
  changed_.notify_all();
}

Result<std::shared_ptr<const ExportedMemory>> ExportedMemory::use() {
  std::lock_guard lock(mutex_);
  if (revoked_) return gone();
  ++users_;
  return std::shared_ptr<const ExportedMemory>(this, [self = shared_from_this()](const auto*) {
    std::lock_guard done(self->mutex_);
    --self->users_;
    self->changed_.notify_all();
  });
}

bool ExportedMemory::revoked() const {
  std::lock_guard lock(mutex_);
  return revoked_;
}

bool ExportedMemory::isFree() const {
  std::lock_guard lock(mutex_);
  return revoked_ && waitingFor_.empty();
}

void ExportedMemory::begin(std::function<void()> letGo) {
  Peers asked;
  {
    std::lock_guard lock(mutex_);
    if (revoked_) return;
    revoked_ = true;
    letGo_ = std::move(letGo);
    for (const auto& opener : openers_) {
      if (auto peer = opener.lock(); peer && peer->channel().status().ok()) asked.push_back(peer);
    }
    waitingFor_ = asked;
  }
  for (const auto& peer : asked) ask(peer);
}

Status ExportedMemory::end(Deadline deadline, std::chrono::nanoseconds timeout) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, deadline.at(), [&] { return waitingFor_.empty() || ending_; });
  if (std::exchange(ending_, true)) {
    changed_.wait(lock, [&] { return finished_; });
    return outcome_;
  }
  Peers late = std::move(silent_);
  late.insert(late.end(), waitingFor_.begin(), waitingFor_.end());
  waitingFor_.clear();
  // Threads of ours, which peers cannot hold up. They use the registrations and the memory.
  changed_.wait(lock, [&] { return users_ == 0; });
  lock.unlock();
  Status outcome = close(late, timeout);
  lock.lock();
  outcome_ = outcome;
  finished_ = true;
  changed_.notify_all();
  return outcome;
}

void ExportedMemory::ask(const std::shared_ptr<PeerState>& peer) {
  const std::string request = Writer().u64(number_).take();
  std::weak_ptr<PeerState> weak = peer;
  peer->channel().ask(kRevokeRegion, request,
                      [self = shared_from_this(), weak](const Result<std::string>& answer) {
                        auto asked = weak.lock();
                        if (!asked) return;
                        if (answer.ok() && *answer == kReleased) self->released(*asked);
                        if (!asked->channel().status().ok()) self->left(*asked);
                      });
}

// One that ended the conversation has closed its links, or its process is gone. One that was not
// heard of may be stopped in the middle of a copy.
void ExportedMemory::remove(const PeerState& peer, bool left) {
  std::function<void()> letGo;
  {
    std::lock_guard lock(mutex_);
    const auto found = std::find_if(waitingFor_.begin(), waitingFor_.end(),
                                    [&](const auto& one) { return one.get() == &peer; });
    if (found == waitingFor_.end()) return;
    if (left && peer.channel().lease()->silent()) silent_.push_back(*found);
    waitingFor_.erase(found);
    if (waitingFor_.empty()) letGo = std::move(letGo_);
    changed_.notify_all();
  }
  if (letGo) letGo();
}

void ExportedMemory::released(const PeerState& peer) {
  remove(peer, /*left=*/false);
}

void ExportedMemory::left(const PeerState& peer) {
  remove(peer, /*left=*/true);
}

void ExportedMemory::closedBy(const PeerState& peer) {
  {
    std::lock_guard lock(mutex_);
    std::erase_if(openers_, [&](const auto& one) { return one.lock().get() == &peer; });
  }
  released(peer);
}

Status ExportedMemory::close(const Peers& late, std::chrono::nanoseconds timeout) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
  for (const auto& peer : late) {
    peer->close(error(Code::disconnected, "{} did not let go of region \"{}\" within {} ms",
                      peer->title(), name_, ms));
  }
  registrations_.clear();
  if (late.empty()) return Status();
  return error(
      Code::deadlineExceeded,
      "region \"{}\" was taken back without the consent of {}, which did not answer within "
      "{} ms and was disconnected",
      name_, titles(late), ms);
}

Status MemoryTable::add(const Memory& memory) {
  std::lock_guard lock(mutex_);
  if (byName_.emplace(memory->name(), memory).second) return Status();
  return error(Code::alreadyExists,
               "a region called \"{}\" is registered already: choose another name", memory->name());
}

Result<MemoryTable::Memory> MemoryTable::find(const std::string& name, bool tellNames) const {
  std::lock_guard lock(mutex_);
  if (auto found = byName_.find(name); found != byName_.end()) return found->second;
  if (!tellNames) return error(Code::notFound, "{} has no region called \"{}\"", owner_, name);
  std::string names;
  for (const auto& [known, memory] : byName_)
    names += (names.empty() ? "\"" : ", \"") + known + "\"";
  return error(Code::notFound, "{} has no region called \"{}\"; it has {}", owner_, name,
               names.empty() ? "none" : names);
}

std::vector<RegionInfo> MemoryTable::listAfter(const std::string& name, size_t most) const {
  std::lock_guard lock(mutex_);
  std::vector<RegionInfo> regions;
  for (auto at = byName_.upper_bound(name); at != byName_.end() && regions.size() < most; ++at)
    regions.push_back(at->second->info());
  return regions;
}

Result<MemoryTable::Memory> MemoryTable::find(const std::string& name, uint64_t number) const {
  std::lock_guard lock(mutex_);
  auto found = byName_.find(name);
  if (found != byName_.end() && found->second->number() == number) return found->second;
  return error(Code::notFound, "{} no longer has the region \"{}\" that was opened", owner_, name);
}

void MemoryTable::beginRevoke(const Memory& memory) {
  {
    std::lock_guard lock(mutex_);
    auto found = byName_.find(memory->name());
    if (found != byName_.end() && found->second == memory) byName_.erase(found);
    revoking_.emplace(memory->number(), memory);
  }
  memory->begin();
}

Status MemoryTable::endRevoke(const Memory& memory, Deadline deadline,
                              std::chrono::nanoseconds timeout) {
  Status status = memory->end(deadline, timeout);
  std::lock_guard lock(mutex_);
  revoking_.erase(memory->number());
  return status;
}

std::map<uint64_t, MemoryTable::Memory> MemoryTable::revoking() const {
  std::lock_guard lock(mutex_);
  return revoking_;
}

void MemoryTable::released(const PeerState& peer, uint64_t number) {
  const auto all = revoking();
  if (auto found = all.find(number); found != all.end()) found->second->released(peer);
}

void MemoryTable::left(const PeerState& peer) {
  for (const auto& [number, memory] : revoking()) memory->left(peer);
}

}  // namespace hmc
