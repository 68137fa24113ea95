#include "store/etcd/key_watch.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace hmc::store::etcd {

namespace {

// How long to wait for a list.
constexpr std::chrono::seconds kListPatience{5};
// A stream is opened again from time to time: a member that has stopped does not end it.
constexpr std::chrono::seconds kStreamRenewal{30};

// What another attempt does not mend.
bool isRefused(const Status& why) {
  return why.code() == Code::permissionDenied || why.code() == Code::invalidArgument ||
         why.code() == Code::failed;
}

}  // namespace

KeyWatch::KeyWatch(Gateway& gateway, const std::string& prefix, std::chrono::milliseconds grace,
                   EventFd fd, std::function<void()> wake)
    : gateway_(gateway),
      range_(Range::beginningWith(gateway.prefix() + prefix)),
      wake_(std::move(wake)),
      keys_(prefix, grace, std::move(fd)) {}

void KeyWatch::resume() {
  {
    std::lock_guard lock(mutex_);
    paused_ = false;
  }
  wake_();
}

void KeyWatch::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
  if (std::exchange(stream_, 0) != 0) gateway_.cancel(exchange_);
}

bool KeyWatch::hasStream() {
  std::lock_guard lock(mutex_);
  if (stream_ == 0) return false;
  if (breaks_ == gateway_.breaks()) return true;
  gateway_.cancel(exchange_);
  stream_ = 0;
  return false;
}

Deadline KeyWatch::maintain() {
  const bool has = hasStream();
  {
    std::lock_guard lock(mutex_);
    if (closed_) return Deadline::never();
    if (has || paused_) return keys_.giveUpOrphans();
    if (Clock::now() < notBefore_) return earlier(Deadline(notBefore_), keys_.giveUpOrphans());
  }
  const Status opened = open();
  if (opened.ok()) return keys_.giveUpOrphans();
  if (isRefused(opened)) {
    keys_.fail(opened);
    close();
    return Deadline::never();
  }
  std::lock_guard lock(mutex_);
  notBefore_ = Clock::now() + backOff_.next();
  return Deadline(notBefore_);
}

Status KeyWatch::open() {
  bool mustList = false;
  {
    std::lock_guard lock(mutex_);
    mustList = mustList_;
  }
  if (mustList) {
    HMC_TRY(list());
  } else {
    // Finds a member that serves, and renews the token.
    HMC_TRY(
        gateway_.call("/v3/kv/range", pingRequest(range_.key), Gateway::Repeat::yes, kListPatience)
            .status());
  }
  startStream(gateway_.member());
  return Status();
}

Status KeyWatch::list() {
  HMC_ASSIGN(const std::string answer, gateway_.call("/v3/kv/range", rangeRequest(range_),
                                                     Gateway::Repeat::yes, kListPatience));
  HMC_ASSIGN(const RangeAnswer range, readRange(answer));
  std::vector<Change> changes;
  changes.reserve(range.kvs.size() + 1);
  for (const KeyValue& kv : range.kvs) changes.push_back(changeOf(false, kv));
  changes.push_back({Change::Kind::current, {}});

  std::lock_guard lock(mutex_);
  // An etcd never goes back, so this is one without the old one's memory.
  keys_.begin(told_ && (range.at.revision < told_->revision || range.at.term < told_->term));
  told_ = range.at;
  mustList_ = false;
  paused_ = !keys_.take(std::move(changes));
  return Status();
}

Change KeyWatch::changeOf(bool removed, const KeyValue& kv) const {
  const size_t ours = std::min(gateway_.prefix().size(), kv.key.size());
  std::string key = kv.key.substr(ours);
  if (removed) return {Change::Kind::removed, {std::move(key), {}}};
  return {Change::Kind::set, {std::move(key), kv.value}};
}

void KeyWatch::startStream(const Gateway::Member& member) {
  const Deadline renewal = kStreamRenewal;
  uint64_t stream = 0;
  int64_t from = 0;
  {
    std::lock_guard lock(mutex_);
    if (closed_ || paused_) return;
    stream = stream_ = ++lastStream_;
    breaks_ = member.breaks;
    from = told_->revision + 1;
  }
  const auto self = shared_from_this();
  const uint64_t exchange = gateway_.watch(
      member, range_, from, renewal,
      [self, stream](const WatchAnswer& answer) { return self->take(stream, answer); },
      [self, stream, member, renewal](const Status& why) {
        self->end(stream, member, renewal, why);
      });
  std::lock_guard lock(mutex_);
  exchange_ = exchange;
  if (stream_ != stream) gateway_.cancel(exchange);  // closed meanwhile, or over already
}

// False ends the stream.
bool KeyWatch::take(uint64_t stream, const WatchAnswer& answer) {
  std::lock_guard lock(mutex_);
  if (stream != stream_) return false;
  // Another etcd than the one that told us, a member that lags behind, or one that has thrown away
  // what we have not heard: a list knows.
  mustList_ =
      answer.compacted ||
      (answer.created && (answer.at.revision < told_->revision || answer.at.term < told_->term));
  if (mustList_) return false;
  if (answer.created) backOff_ = BackOff();
  if (answer.events.empty()) return true;
  std::vector<Change> changes;
  changes.reserve(answer.events.size());
  for (const auto& event : answer.events) changes.push_back(changeOf(event.removed, event.kv));
  told_ = {answer.events.back().kv.modRevision, std::max(told_->term, answer.at.term)};
  paused_ = !keys_.take(std::move(changes));
  return !paused_;
}

void KeyWatch::end(uint64_t stream, const Gateway::Member& member, Deadline renewal,
                   const Status& why) {
  {
    std::lock_guard lock(mutex_);
    if (stream != stream_) return;
    stream_ = 0;
    const bool ours = why.code() == Code::cancelled || renewal.passed();
    if (!ours && isRefused(why)) {
      closed_ = true;
      keys_.fail(why);
      return;
    }
    if (!ours) {
      notBefore_ = Clock::now() + backOff_.next();
      gateway_.leave(member);
    }
  }
  wake_();
}

}  // namespace hmc::store::etcd
