#include "fakes/faulty_transport.h"

#include <algorithm>
#include <list>
#include <vector>

namespace hmc::fakes {

void Faults::failNth(uint64_t n, const Status& why) {
  std::lock_guard lock(mutex_);
  countdown_ = n;
  fate_ = why;
}

void Faults::die(const Status& why) {
  std::lock_guard lock(mutex_);
  dead_ = why;
}

Status Faults::fateOfNextOp() {
  std::lock_guard lock(mutex_);
  if (countdown_ == 0 || --countdown_ > 0) return Status();
  return fate_;
}

Status Faults::dead() const {
  std::lock_guard lock(mutex_);
  return dead_;
}

namespace {

// An operation whose end the wrapped link reports to us instead of to its owner.
struct Pending {
  explicit Pending(Completion* theirs) : owner(theirs) {}
  Completion inner{1};
  Completion* const owner;
  uint32_t delayed = 0;

  void report() {
    Status status = inner.status();
    status.ok() ? owner->finish() : owner->fail(status);
  }
};

class FaultyLink : public Link {
 public:
  // What the transport and its links share.
  struct Shared {
    std::mutex mutex;  // guards links
    std::list<FaultyLink*> links;
    std::shared_ptr<Faults> faults;
  };

  FaultyLink(std::unique_ptr<Link> inner, std::shared_ptr<Shared> shared)
      : inner_(std::move(inner)), shared_(std::move(shared)) {
    std::lock_guard lock(shared_->mutex);
    shared_->links.push_back(this);
  }
  ~FaultyLink() override {
    {
      std::lock_guard lock(shared_->mutex);
      shared_->links.remove(this);
    }
    inner_.reset();  // fenced: everything pending has ended
    for (auto& pending : pending_) pending->report();
  }

  const std::string& address() const override { return inner_->address(); }
  Status connect(std::string_view peer) override { return inner_->connect(peer); }
  Result<std::unique_ptr<RemoteMemory>> importKey(std::string_view key, Deadline deadline,
                                                  void* place) override {
    return inner_->importKey(key, deadline, place);
  }

  size_t post(std::span<const Op> ops) override {
    obeyDeath();
    const size_t most = closed_ ? ops.size() : shared_->faults->mostPerPost.load();
    size_t accepted = 0;
    for (const Op& op : ops.first(std::min(ops.size(), most))) {
      if (!postOne(op)) break;
      ++accepted;
    }
    return accepted;
  }

  void close(const Status& why) override {
    closed_ = true;
    inner_->close(why);
  }

  void obeyDeath() {
    if (Status dead = shared_->faults->dead(); !dead.ok()) close(dead);
  }

  // Hands on what has ended and waited long enough. Answers whether anything was handed on.
  bool report() {
    std::lock_guard lock(mutex_);
    const bool held = shared_->faults->stalled && !closed_;
    const uint32_t delay = shared_->faults->delay;
    const size_t before = pending_.size();
    std::erase_if(pending_, [&](std::unique_ptr<Pending>& pending) {
      if (!pending->inner.done() || held || pending->delayed++ < delay) return false;
      pending->report();
      return true;
    });
    return pending_.size() != before;
  }
  // Whether something has ended and waits only for more calls of report().
  bool delaying() {
    std::lock_guard lock(mutex_);
    if (shared_->faults->stalled && !closed_) return false;
    return std::any_of(pending_.begin(), pending_.end(),
                       [](const auto& pending) { return pending->inner.done(); });
  }

 private:
  bool postOne(const Op& op) {
    auto pending = std::make_unique<Pending>(op.completion);
    Op ours = op;
    ours.completion = &pending->inner;
    std::lock_guard lock(mutex_);
    if (Status fate = shared_->faults->fateOfNextOp(); !fate.ok()) {
      pending->inner.fail(fate);
    } else if (inner_->post({&ours, 1}) == 0) {
      return false;
    }
    pending_.push_back(std::move(pending));
    return true;
  }

  std::unique_ptr<Link> inner_;
  const std::shared_ptr<Shared> shared_;
  std::atomic<bool> closed_{false};
  std::mutex mutex_;  // guards pending_
  std::vector<std::unique_ptr<Pending>> pending_;
};

class FaultyTransport : public Transport {
 public:
  FaultyTransport(std::unique_ptr<Transport> inner, std::shared_ptr<Faults> faults)
      : Transport(inner->facts()), inner_(std::move(inner)) {
    shared_->faults = std::move(faults);
  }

  Result<std::unique_ptr<Registration>> registerRegion(const Region& region, Access access,
                                                       Exposure exposure) override {
    return inner_->registerRegion(region, access, exposure);
  }

  Result<std::unique_ptr<Link>> openLink(const LinkOptions& options) override {
    auto link = inner_->openLink(options);
    if (!link.ok()) return link.status();
    return std::unique_ptr<Link>(new FaultyLink(*std::move(link), shared_));
  }

  bool progress(Deadline until) override {
    bool delaying = false;
    {
      std::lock_guard lock(shared_->mutex);
      for (FaultyLink* link : shared_->links) {
        link->obeyDeath();
        delaying = link->delaying() || delaying;
      }
    }
    inner_->progress(delaying ? Deadline::now() : until);
    bool reported = false;
    std::lock_guard lock(shared_->mutex);
    for (FaultyLink* link : shared_->links) reported = link->report() || reported;
    return reported;
  }
  void wake() override { inner_->wake(); }

 private:
  const std::unique_ptr<Transport> inner_;
  const std::shared_ptr<FaultyLink::Shared> shared_ = std::make_shared<FaultyLink::Shared>();
};

}  // namespace

std::unique_ptr<Transport> makeFaulty(std::unique_ptr<Transport> inner,
                                      std::shared_ptr<Faults> faults) {
  return std::make_unique<FaultyTransport>(std::move(inner), std::move(faults));
}

}  // namespace hmc::fakes
