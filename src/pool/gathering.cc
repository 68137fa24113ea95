#include "pool/gathering.h"

#include <poll.h>

#include <map>

#include "base/environment.h"
#include "base/error.h"
#include "base/event_fd.h"
#include "base/random.h"
#include "pool/local_address.h"

namespace hmc {

namespace pool {

namespace {

// A rank that died before all were there is free for another process so much later.
constexpr std::chrono::milliseconds kTtl{4000};

Status givenUp() {
  return error(Code::cancelled, "waiting for the other ranks was cancelled");
}

bool isFinal(Code code) {
  return code == Code::cancelled || code == Code::permissionDenied ||
         code == Code::invalidArgument || code == Code::unsupported;
}

// What the caller says counts like the variables that `hmc pool run` sets: before a launcher's.
Result<Launch> launchFor(const GatheringOptions& options) {
  std::map<std::string_view, std::string> said;
  if (!options.store.empty()) said[variable::kPoolStore.name] = options.store;
  if (options.rank) said[variable::kPoolRank.name] = std::to_string(*options.rank);
  if (options.size > 0) said[variable::kPoolSize.name] = std::to_string(options.size);
  return readLaunch([&](const char* name) -> std::optional<std::string> {
    const auto found = said.find(name);
    if (found != said.end()) return found->second;
    // Where nothing is left to ask, whatever a launcher says may be wrong.
    return said.size() == 3 ? std::nullopt : environmentVariable(name);
  });
}

Result<Joining> joiningFor(const GatheringOptions& options) {
  PoolOptions place;
  place.name = options.name;
  place.rank = options.rank;
  place.capacity = options.size;
  place.node.secret = options.secret;
  place.node.insecure = true;  // its users are the documented classes, whose manuals know no secret
  place.node.lease = kTtl;
  // Who is alone needs no store.
  if (options.size == 1 && options.store.empty()) {
    place.rank = 0;
    return Joining{"", place, false};
  }
  HMC_ASSIGN(const Launch launch, launchFor(options));
  HMC_ASSIGN(Joining joining, joiningFrom(launch, place));
  if (joining.options.rank && joining.options.capacity > 0) return joining;
  return error(Code::invalidArgument,
               "the store {} was named, but not this process's {}: name it, or set {} and {}",
               launch.store, joining.options.rank ? "number of ranks" : "rank",
               variable::kPoolRank.name, variable::kPoolSize.name);
}

}  // namespace

GatheringImpl::~GatheringImpl() {
  if (store_.served && !over_) store_.served->endAtOnce();
}

Result<std::vector<std::string>> GatheringImpl::wait(const std::string& mine, Deadline deadline) {
  if (cancelled_.stop_requested()) return givenUp();
  if (size() == 1) return std::vector<std::string>{mine};
  if (!over_) {
    if (!store_.client) HMC_TRY(open(deadline));
    if (!group_) HMC_TRY(join(deadline));
    if (!rounds_) HMC_TRY(meet(deadline));
    if (everyone_.empty()) HMC_TRY(exchange(mine, deadline));
    HMC_TRY(part(deadline));
  }
  return everyone_;
}

Status GatheringImpl::open(Deadline deadline) {
  auto opened = openStoreOf(joining_, deadline, cancelled_.get_token());
  if (opened.ok()) {
    store_ = *std::move(opened);
    return Status();
  }
  if (isFinal(opened.status().code())) return opened.status();
  return error(Code::deadlineExceeded,
               "rank 0 does not answer at {}: {}; start it, or allow a longer timeout", store(),
               opened.status().message());
}

Status GatheringImpl::join(Deadline deadline) {
  store::GroupOptions group;
  group.name = "gathering." + hex(joining_.options.name);
  group.capacity = size();
  group.rank = rank();
  group.ttl = kTtl;
  auto joined = store::Group::join(store_.client, group, deadline);
  if (joined.ok()) {
    group_ = *std::move(joined);
    return Status();
  }
  if (joined.status().code() != Code::alreadyExists) return joined.status();
  return error(Code::alreadyExists,
               "rank {} of {} at {} is taken by another process: give each a rank of its own",
               rank(), joining_.options.name, store());
}

Status GatheringImpl::meet(Deadline deadline) {
  for (;;) {
    const std::vector<store::Member> members = group_->members();
    if (members.size() == size()) {
      // No other gathering of this name has or had this rank 0.
      rounds_ = std::make_unique<store::Rendezvous>(
          store_.client, "gathered/" + hex(members.front().incarnation), rank(), size());
      return Status();
    }
    const Status news = awaitNews(deadline);
    if (!news.ok()) return missing(news);
  }
}

// Until somebody comes or goes.
Status GatheringImpl::awaitNews(Deadline deadline) {
  HMC_ASSIGN(const auto cancelled, EventFd::create("a gathering"));
  const std::stop_callback wake(cancelled_.get_token(), [&] { cancelled.signal(); });
  HMC_ASSIGN(const int news, group_->eventFd());
  for (;;) {
    pollfd watched[] = {{news, POLLIN, 0}, {cancelled.get(), POLLIN, 0}};
    (void)poll(watched, std::size(watched), deadline.leftMs());
    if (cancelled_.stop_requested()) return givenUp();
    // Readable may turn out to be nothing.
    Status event = group_->nextEvent(Deadline::now()).status();
    if (event.code() != Code::deadlineExceeded || deadline.passed()) return event;
  }
}

Status GatheringImpl::exchange(const std::string& mine, Deadline deadline) {
  auto all = rounds_->allgather(mine, deadline, cancelled_.get_token());
  if (!all.ok()) return missing(all.status());
  everyone_ = *std::move(all);
  return Status();
}

// Nobody comes back before all have gone: then the same name can be used again.
Status GatheringImpl::part(Deadline deadline) {
  if (!left_) HMC_TRY(group_->leave(deadline));
  left_ = true;
  HMC_TRY(rounds_->barrier(deadline, cancelled_.get_token()));
  over_ = true;
  rounds_.reset();
  group_.reset();
  store_.client.reset();
  return Status();
}

Status GatheringImpl::missing(const Status& late) const {
  if (late.code() != Code::deadlineExceeded) return late;
  std::vector<bool> there(size());
  for (const store::Member& member : group_->members()) there[member.rank] = true;
  std::string ranks;
  for (uint32_t rank = 0; rank < size(); ++rank) {
    if (!there[rank]) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  }
  if (ranks.empty()) return late;
  return error(Code::deadlineExceeded,
               "rank {} of {} did not connect in time: start it, or allow a longer timeout", ranks,
               size());
}

}  // namespace pool

Result<Gathering> Gathering::begin(const GatheringOptions& options) {
  if (options.rank && options.size > 0 && *options.rank >= options.size) {
    return error(Code::invalidArgument, "rank {} of {}: ranks are 0 to {}", *options.rank,
                 options.size, options.size - 1);
  }
  HMC_ASSIGN(auto joining, pool::joiningFor(options));
  return Gathering(std::make_unique<pool::GatheringImpl>(std::move(joining)));
}

Gathering::Gathering(std::unique_ptr<pool::GatheringImpl> impl) : impl_(std::move(impl)) {}
Gathering::~Gathering() = default;
Gathering::Gathering(Gathering&&) noexcept = default;
Gathering& Gathering::operator=(Gathering&&) noexcept = default;

uint32_t Gathering::rank() const {
  return impl_->rank();
}
uint32_t Gathering::size() const {
  return impl_->size();
}

Result<std::string> Gathering::host() const {
  return pool::ownAddressFor(impl_->store());
}

void Gathering::cancel() {
  impl_->cancel();
}

Result<std::vector<std::string>> Gathering::wait(const std::string& mine,
                                                 std::chrono::nanoseconds timeout) {
  return impl_->wait(mine, Deadline(timeout));
}

}  // namespace hmc
