#include "store/group.h"

#include <sys/epoll.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/event_fd.h"
#include "base/random.h"

namespace hmc::store {

namespace {

constexpr size_t kIncarnationSize = 16;
constexpr char kHere = '+';
constexpr char kLeaving = '-';
constexpr size_t kLongestName = 256;
constexpr size_t kMostShown = 64;

// A member's key holds whether it is about to leave, its incarnation and its description, and
// nothing that these do not tell: reap() compares the whole value.
std::string encodeMember(const Member& member, char state = kHere) {
  return state + member.incarnation + member.description;
}

struct Decoded {
  Member member;
  bool leaving;
};

std::optional<Decoded> decodeMember(uint32_t rank, std::string_view value) {
  if (value.size() <= kIncarnationSize) return std::nullopt;
  if (value.front() != kHere && value.front() != kLeaving) return std::nullopt;
  return Decoded{{rank, std::string(value.substr(1, kIncarnationSize)),
                  std::string(value.substr(1 + kIncarnationSize))},
                 value.front() == kLeaving};
}

std::string prefixOf(const std::string& group) {
  return "groups/" + group + "/rank/";
}

std::string keyOf(const std::string& group, uint32_t rank) {
  return prefixOf(group) + std::to_string(rank);
}

// For sentences: a description may be any bytes.
std::string nameOf(const Member& member, const GroupOptions& options) {
  const std::string text =
      options.describe ? options.describe(member.description) : member.description;
  const bool printable = !text.empty() && text.size() <= kMostShown &&
                         std::all_of(text.begin(), text.end(), [](unsigned char byte) {
                           return byte >= 0x20 && byte < 0x7f;
                         });
  const std::string incarnation = hex(member.incarnation).substr(0, 8);
  return printable ? fmt::format("{} (incarnation {})", text, incarnation)
                   : fmt::format("incarnation {}", incarnation);
}

Status check(const GroupOptions& options) {
  if (options.name.empty() || options.name.size() > kLongestName ||
      options.name.find('/') != std::string::npos) {
    return error(Code::invalidArgument,
                 "{:?} is no name of a group: it must have 1 to {} bytes and no /", options.name,
                 kLongestName);
  }
  if (options.capacity == 0) return error(Code::invalidArgument, "a group with room for no rank");
  if (options.rank && *options.rank >= options.capacity) {
    return error(Code::invalidArgument, "rank {} of group {}: the last is {}", *options.rank,
                 options.name, options.capacity - 1);
  }
  if (options.description.size() > kLargestValue - kIncarnationSize - 1) {
    return error(Code::invalidArgument, "a description of {} bytes: {} is the most",
                 options.description.size(), kLargestValue - kIncarnationSize - 1);
  }
  return Status();
}

class GroupImpl final : public Group {
 public:
  GroupImpl(std::shared_ptr<Store> store, const GroupOptions& options)
      : store_(std::move(store)), options_(options) {
    self_.incarnation = randomBytes(kIncarnationSize);
    self_.description = options.description;
  }

  Status open(Deadline deadline);

  const Member& self() const override { return self_; }
  Status status() const override;
  std::vector<Member> members() const override;
  Result<Member> find(uint32_t rank, Deadline deadline) override;
  Result<GroupEvent> nextEvent(Deadline deadline) override;
  Result<int> eventFd() override;
  Status reap(const Member& dead, Deadline deadline) override;
  Status leave(Deadline deadline) override;

 private:
  using Lock = std::unique_lock<std::mutex>;

  // Joining, before anybody else sees the group.
  std::optional<uint32_t> freeRank() const;
  // Ok when something changed, so that a rank may be free now.
  Status awaitFreeRank(Lock& lock, Deadline deadline) const;
  Result<bool> claim(uint32_t rank, Deadline deadline);
  Status taken() const;

  // Takes what the watch has, waiting for it until the deadline, unless another thread does.
  Status read(Lock& lock, Deadline deadline) const;
  void apply(const Change& change) const;
  void joined(const Member& member) const;
  void left(uint32_t rank) const;
  void push(const GroupEvent& event) const;

  const std::shared_ptr<Store> store_;
  const GroupOptions options_;
  Member self_;  // constant once we have joined
  std::unique_ptr<Watch> watch_;

  mutable std::mutex mutex_;  // guards everything below
  mutable std::condition_variable changed_;
  mutable bool reading_ = false;
  mutable bool current_ = false;
  mutable std::map<uint32_t, Member> members_;
  // Those of members_ that have said that they leave.
  mutable std::set<uint32_t> leaving_;
  // Ranks whose key holds what no member has written, or the last words of one that we never met.
  mutable std::set<uint32_t> occupied_;
  mutable std::deque<GroupEvent> events_;
  mutable Status status_;
  mutable std::shared_ptr<KeyLease> lease_;
  // Made by eventFd().
  Fd poll_;
  mutable std::optional<EventFd> queued_;  // signalled while there are events
};

Status GroupImpl::open(Deadline deadline) {
  HMC_ASSIGN(lease_, store_->lease(options_.ttl, deadline));
  HMC_ASSIGN(watch_, store_->watch(prefixOf(options_.name)));
  Lock lock(mutex_);
  while (!current_) HMC_TRY(read(lock, deadline));
  for (bool done = false; !done;) {
    const auto rank = freeRank();
    if (!rank) {
      HMC_TRY(awaitFreeRank(lock, deadline));
      continue;
    }
    lock.unlock();
    HMC_ASSIGN(done, claim(*rank, deadline));
    lock.lock();
    if (!done) continue;
    self_.rank = *rank;
  }
  // What the others hear, we have heard as well: no event that follows is about ourselves.
  while (status_.ok() && (members_.count(self_.rank) == 0 ||
                          members_.at(self_.rank).incarnation != self_.incarnation)) {
    HMC_TRY(read(lock, deadline));
  }
  return status_;
}

std::optional<uint32_t> GroupImpl::freeRank() const {
  const auto isFree = [this](uint32_t rank) {
    return members_.count(rank) == 0 && occupied_.count(rank) == 0;
  };
  if (options_.rank) return isFree(*options_.rank) ? options_.rank : std::nullopt;
  for (uint32_t rank = 0; rank < options_.capacity; ++rank) {
    if (isFree(rank)) return rank;
  }
  return std::nullopt;
}

// Whoever holds it may be dead: then its lease ends.
Status GroupImpl::awaitFreeRank(Lock& lock, Deadline deadline) const {
  Deadline patience = deadline;
  // The store looks at leases a little later than they end.
  if (options_.rank) patience = earlier(deadline, options_.ttl + options_.ttl / 4);
  const auto holder = [this] {
    const auto found = members_.find(options_.rank.value_or(0));
    return found == members_.end() ? std::string() : found->second.incarnation;
  };
  for (const std::string first = holder(); !freeRank() && holder() == first;) {
    const Status news = read(lock, patience);
    if (news.code() == Code::deadlineExceeded) return taken();
    HMC_TRY(news);
  }
  return Status();
}

// False when somebody else has it by now, and then we know who.
Result<bool> GroupImpl::claim(uint32_t rank, Deadline deadline) {
  const std::string key = keyOf(options_.name, rank);
  const std::string value = encodeMember(self_);
  for (;;) {
    auto swap = store_->compareAndSet(key, std::nullopt, value, deadline, lease_);
    // It may have been carried out: then the next one finds our value.
    if (swap.status().code() == Code::disconnected) continue;
    if (!swap.ok()) return swap.status();
    if (swap->done || swap->found == value) return true;
    std::lock_guard lock(mutex_);
    apply({Change::Kind::set, {key, swap->found.value_or("")}});
    return false;
  }
}

Status GroupImpl::taken() const {
  const uint32_t rank = options_.rank.value_or(0);
  const auto found = members_.find(rank);
  const std::string holder =
      found == members_.end() ? "something that is no member" : nameOf(found->second, options_);
  if (options_.rank) {
    return error(Code::alreadyExists, "rank {} of group {} is taken by {}", rank, options_.name,
                 holder);
  }
  return error(Code::exhausted, "all {} ranks of group {} are taken, rank 0 by {}",
               options_.capacity, options_.name, holder);
}

Status GroupImpl::read(Lock& lock, Deadline deadline) const {
  if (reading_) {
    changed_.wait_until(lock, deadline.at());
    if (!deadline.passed()) return Status();
    return error(Code::deadlineExceeded, "nothing changed in group {} before the deadline",
                 options_.name);
  }
  reading_ = true;
  lock.unlock();
  auto changes = watch_->next(deadline);
  lock.lock();
  reading_ = false;
  changed_.notify_all();
  if (!changes.ok()) return changes.status();
  for (const Change& change : *changes) apply(change);
  if (status_.ok()) return Status();
  // A key that somebody has taken from us must not come back when the store is restarted.
  std::shared_ptr<KeyLease> lost = std::move(lease_);
  lock.unlock();
  lost.reset();
  lock.lock();
  return Status();
}

void GroupImpl::apply(const Change& change) const {
  if (change.kind == Change::Kind::current) {
    current_ = true;
    return;
  }
  const std::string text = change.entry.key.substr(prefixOf(options_.name).size());
  uint32_t rank = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (problem != std::errc() || std::to_string(rank) != text) return;  // not of ours
  occupied_.erase(rank);
  if (change.kind == Change::Kind::removed) return left(rank);
  const auto found = decodeMember(rank, change.entry.value);
  if (found && !found->leaving) return joined(found->member);
  const auto known = members_.find(rank);
  if (found && known != members_.end() && known->second.incarnation == found->member.incarnation) {
    // It goes when its key does: who hears of it earlier may end the store that it still needs.
    leaving_.insert(rank);
    return;
  }
  left(rank);
  occupied_.insert(rank);
}

void GroupImpl::joined(const Member& member) const {
  const auto found = members_.find(member.rank);
  const bool again = found != members_.end() && found->second.incarnation == member.incarnation;
  if (!again) left(member.rank);
  members_[member.rank] = member;
  if (!again) push({GroupEvent::Kind::joined, member});
}

void GroupImpl::left(uint32_t rank) const {
  const bool said = leaving_.erase(rank) == 1;
  const auto found = members_.find(rank);
  if (found == members_.end()) return;
  const Member member = std::move(found->second);
  members_.erase(found);
  push({GroupEvent::Kind::left, member, said});
  if (member.incarnation != self_.incarnation || !status_.ok()) return;
  status_ = error(Code::disconnected,
                  "rank {} of group {} is no longer ours: another process removed or took it; join "
                  "again",
                  rank, options_.name);
}

void GroupImpl::push(const GroupEvent& event) const {
  if (event.member.incarnation == self_.incarnation) return;
  events_.push_back(event);
  if (queued_) queued_->signal();
  changed_.notify_all();
}

Status GroupImpl::status() const {
  Lock lock(mutex_);
  if (!reading_) (void)read(lock, Deadline::now());
  if (!status_.ok() || !lease_) return status_;
  const Status lease = lease_->status();
  return lease.code() == Code::alreadyExists ? lease : Status();
}

std::vector<Member> GroupImpl::members() const {
  Lock lock(mutex_);
  if (!reading_) (void)read(lock, Deadline::now());
  std::vector<Member> all;
  all.reserve(members_.size());
  for (const auto& [rank, member] : members_) all.push_back(member);
  return all;
}

Result<Member> GroupImpl::find(uint32_t rank, Deadline deadline) {
  const auto value = store_->get(keyOf(options_.name, rank), deadline);
  if (!value.ok() && value.status().code() != Code::notFound) return value.status();
  auto found = value.ok() ? decodeMember(rank, *value) : std::nullopt;
  if (found && !found->leaving) return std::move(found->member);
  return error(Code::notFound, "group {} has no rank {} now", options_.name, rank);
}

Result<GroupEvent> GroupImpl::nextEvent(Deadline deadline) {
  Lock lock(mutex_);
  for (;;) {
    if (!events_.empty()) {
      GroupEvent event = std::move(events_.front());
      events_.pop_front();
      if (queued_ && events_.empty()) queued_->clear();
      return event;
    }
    if (status_.code() == Code::cancelled) return status_;
    HMC_TRY(read(lock, deadline));
  }
}

Result<int> GroupImpl::eventFd() {
  std::lock_guard lock(mutex_);
  if (poll_) return poll_.get();
  Fd poll(epoll_create1(EPOLL_CLOEXEC));
  if (!poll) return errnoStatus("making an epoll for a group");
  HMC_ASSIGN(EventFd queued, EventFd::create("a group"));
  if (!events_.empty()) queued.signal();
  for (int fd : {watch_->fd(), queued.get()}) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    if (epoll_ctl(poll.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      return errnoStatus("adding a descriptor to a group's epoll");
    }
  }
  queued_.emplace(std::move(queued));
  poll_ = std::move(poll);
  return poll_.get();
}

Status GroupImpl::reap(const Member& dead, Deadline deadline) {
  const std::string key = keyOf(options_.name, dead.rank);
  for (;;) {
    const auto swap = store_->compareAndSet(key, encodeMember(dead), std::nullopt, deadline);
    if (swap.status().code() != Code::disconnected) return swap.status();
  }
}

Status GroupImpl::leave(Deadline deadline) {
  std::shared_ptr<KeyLease> lease;
  {
    std::lock_guard lock(mutex_);
    status_ = error(Code::cancelled, "this process has left group {}", options_.name);
    lease = lease_;
    changed_.notify_all();
  }
  if (!lease) return Status();
  // Who merely vanishes has died: the others shall know the difference. Where this fails they will
  // not, and that is all.
  (void)store_->compareAndSet(keyOf(options_.name, self_.rank), encodeMember(self_),
                              encodeMember(self_, kLeaving), deadline, lease);
  return lease->revoke(deadline);
}

}  // namespace

Result<std::unique_ptr<Group>> Group::join(std::shared_ptr<Store> store,
                                           const GroupOptions& options, Deadline deadline) {
  HMC_TRY(check(options));
  auto group = std::make_unique<GroupImpl>(std::move(store), options);
  HMC_TRY(group->open(deadline));
  return std::unique_ptr<Group>(std::move(group));
}

}  // namespace hmc::store
