#include "store/gathering.h"

#include <algorithm>

#include "base/error.h"
#include "base/random.h"

namespace hmc {

namespace store {

namespace {

// A rank that died before all were there is free for another process so much later.
constexpr std::chrono::milliseconds kTtl{4000};

// What takes several round trips gets so much at least, because it would begin again from the
// start.
constexpr std::chrono::milliseconds kLeast{500};

Deadline atLeast(Deadline deadline) {
  return Deadline(std::max(deadline.at(), Deadline(kLeast).at()));
}

bool isFinal(Code code) {
  return code == Code::permissionDenied || code == Code::invalidArgument ||
         code == Code::unsupported;
}

}  // namespace

GatheringImpl::~GatheringImpl() {
  rounds_.reset();
  group_.reset();
  store_.reset();
  // The others may not have heard yet that all have left.
  if (server_ && over_) (void)server_->awaitNoClients(kTtl);
}

Result<std::vector<std::string>> GatheringImpl::wait(Deadline deadline) {
  if (!store_) HMC_TRY(open(deadline));
  if (!group_) HMC_TRY(join(deadline));
  if (everyone_.empty()) HMC_TRY(meet(deadline));
  // Nobody goes before all have seen all, and nobody comes back before all have gone: then the same
  // name can be used again.
  if (!seen_) HMC_TRY(rounds_->barrier(deadline));
  seen_ = true;
  if (!left_) HMC_TRY(group_->leave(deadline));
  left_ = true;
  if (!over_) HMC_TRY(rounds_->barrier(deadline));
  over_ = true;
  return everyone_;
}

Status GatheringImpl::open(Deadline deadline) {
  if (options_.rank == 0 && !server_) {
    auto started = Server::start(address_, {.secret = options_.secret});
    if (started.ok()) {
      server_ = *std::move(started);
    } else if (started.status().code() != Code::alreadyExists) {
      return started.status();
    }
  }
  auto opened = openStore(address_, {.secret = options_.secret}, atLeast(deadline));
  if (opened.ok()) {
    store_ = *std::move(opened);
    return Status();
  }
  if (isFinal(opened.status().code())) return opened.status();
  return error(Code::deadlineExceeded,
               "rank 0 does not answer at {}: {}; start it, or allow a longer timeout", address_,
               opened.status().message());
}

Status GatheringImpl::join(Deadline deadline) {
  GroupOptions group;
  group.name = "gathering." + hex(options_.name);
  group.capacity = options_.size;
  group.rank = options_.rank;
  group.description = mine_;
  group.ttl = kTtl;
  auto joined = Group::join(store_, group, atLeast(deadline));
  if (joined.ok()) {
    group_ = *std::move(joined);
    return Status();
  }
  if (joined.status().code() != Code::alreadyExists) return joined.status();
  if (!patience_) patience_ = Deadline(kTtl + kTtl / 4);
  return error(patience_->passed() ? Code::alreadyExists : Code::deadlineExceeded,
               "rank {} of {} at {} is taken by another process: give each a rank of its own",
               options_.rank, options_.name, address_);
}

Status GatheringImpl::meet(Deadline deadline) {
  for (;;) {
    std::vector<std::string> all;
    std::string first;
    for (const Member& member : group_->members()) {
      if (member.rank == 0) first = member.incarnation;
      if (member.rank < options_.size) all.push_back(member.description);
    }
    if (all.size() == options_.size) {
      rounds_ = std::make_unique<Rendezvous>(store_, "gathered/" + hex(first), options_.rank,
                                             options_.size);
      everyone_ = std::move(all);
      return Status();
    }
    const Status news = group_->nextEvent(deadline).status();
    if (news.code() == Code::deadlineExceeded) return missing();
    HMC_TRY(news);
  }
}

Status GatheringImpl::missing() const {
  std::vector<bool> there(options_.size);
  for (const Member& member : group_->members()) {
    if (member.rank < options_.size) there[member.rank] = true;
  }
  std::string ranks;
  for (uint32_t rank = 0; rank < options_.size; ++rank) {
    if (!there[rank]) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  }
  return error(Code::deadlineExceeded,
               "rank {} of {} did not connect in time: start it, or allow a longer timeout", ranks,
               options_.size);
}

}  // namespace store

Result<Gathering> Gathering::begin(const std::string& store, const GatheringOptions& options,
                                   const std::string& mine) {
  if (options.rank >= options.size) {
    return error(Code::invalidArgument, "rank {} of {}: ranks are 0 to {}", options.rank,
                 options.size, static_cast<int64_t>(options.size) - 1);
  }
  return Gathering(std::make_unique<store::GatheringImpl>(store, options, mine));
}

Gathering::Gathering(std::unique_ptr<store::GatheringImpl> impl) : impl_(std::move(impl)) {}
Gathering::~Gathering() = default;
Gathering::Gathering(Gathering&&) noexcept = default;
Gathering& Gathering::operator=(Gathering&&) noexcept = default;

Result<std::vector<std::string>> Gathering::wait(std::chrono::nanoseconds timeout) {
  return impl_->wait(Deadline(timeout));
}

}  // namespace hmc
