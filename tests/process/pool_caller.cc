#include <hmc/pool.h>
#include <hmc/store.h>

#include <optional>

#include "caller.h"

namespace hmc::test {

namespace {

constexpr uint32_t kCapacity = 2;
constexpr size_t kSlot = size_t{4} << 20;
constexpr size_t kCopy = size_t{1} << 20;
enum Rank : uint32_t { kFirst, kSecond };

// Members of a pool of two, and of pools that they join and leave again and again. The first one's
// process has the store.
class PoolCaller : public Caller {
 public:
  explicit PoolCaller(const Circumstances& circumstances)
      : circumstances_(circumstances),
        server_(StoreServer::start("tcp://" + circumstances.host + ":0").value()),
        here_(6 * kCopy) {}

  std::string introduction() const override { return server_.address(); }
  Status meet(const std::string& introduction) override;
  std::vector<Call> calls() override;
  // As ~Pool says.
  std::chrono::milliseconds ends() const override { return 5 * circumstances_.lease; }

 private:
  // Of the other one, where the copy of that number goes (the second is read by all that fetch),
  // and memory for it here.
  char* there(size_t number) const {
    const uint32_t rank = circumstances_.first ? kSecond : kFirst;
    return static_cast<char*>(pool_->base()) + rank * pool_->stride() + number % 4 * kCopy;
  }
  char* here(size_t number) { return here_.data() + number * kCopy; }
  Status join(std::optional<Pool>& pool, const char* name, Deadline deadline) const;
  Status copyMany(Timeout timeout);
  Status cancel(Timeout timeout);
  Status registered(Timeout timeout);

  const Circumstances circumstances_;
  StoreServer server_;
  std::string store_;
  std::vector<char> here_;
  std::optional<Pool> pool_;
  // Of one thread each.
  std::optional<Pool> joining_, leaving_;
};

Status PoolCaller::join(std::optional<Pool>& pool, const char* name, Deadline deadline) const {
  PoolOptions options;
  options.name = name;
  options.rank = circumstances_.first ? kFirst : kSecond;
  options.capacity = kCapacity;
  options.hostSize = kSlot;
  options.node.transports = {circumstances_.transport};
  options.node.lease = circumstances_.lease;
  options.node.heartbeat = circumstances_.lease / 8;
  auto joined = Pool::join(store_, options, deadline.left());
  if (joined.ok()) pool.emplace(*std::move(joined));
  return joined.status();
}

Status PoolCaller::meet(const std::string& introduction) {
  store_ = circumstances_.first ? server_.address() : introduction;
  pool_.reset();
  return join(pool_, "stays", kDefaultTimeout);
}

Status PoolCaller::copyMany(Timeout timeout) {
  constexpr size_t kPiece = 20000;
  std::vector<PoolCopy> copies;
  for (size_t at = 0; at < kCopy - kPiece; at += 2 * kPiece)
    copies.push_back({there(3) + at, here(3) + at, kPiece});
  const Deadline deadline(timeout);
  auto ticket = pool_->startCopy(copies, timeout);
  if (!ticket.ok()) return ticket.status();
  const Status waited = ticket->wait(deadline.left());
  return waited.code() == Code::deadlineExceeded ? ticket->cancel() : waited;
}

Status PoolCaller::cancel(Timeout timeout) {
  auto ticket = pool_->startCopy({{here(4), there(1), kCopy}}, timeout);
  return ticket.ok() ? ticket->cancel() : ticket.status();
}

Status PoolCaller::registered(Timeout timeout) {
  const Status added = pool_->registerMemory(here(5), kCopy);
  if (!added.ok()) return added;
  const Status copied = pool_->copy(here(5), there(1), kCopy, timeout);
  const Status removed = pool_->unregisterMemory(here(5));
  return copied.ok() ? removed : copied;
}

std::vector<Call> PoolCaller::calls() {
  using T = Timeout;
  // What is cut off is first fenced.
  const auto fence = 2 * circumstances_.lease;
  // A store that no longer answers is given a second to hear the goodbye.
  constexpr std::chrono::milliseconds kGoodbye{1000};
  return {
      {"nextEvent", [this](T t) { return pool_->nextEvent(t).status(); }},
      {"copyTo", [this](T t) { return pool_->copy(there(0), here(0), kCopy, t); }, fence},
      {"copyFrom", [this](T t) { return pool_->copy(here(1), there(1), kCopy, t); }, fence},
      {"copy2d", [this](T t) { return pool_->copy2d(there(2), 4096, here(2), 2048, 2048, 256, t); },
       fence},
      {"startCopy", [this](T t) { return copyMany(t); }, fence},
      {"cancel", [this](T t) { return cancel(t); }, fence, false},
      {"registered", [this](T t) { return registered(t); }, fence},
      {"join", [this](T t) { return join(joining_, "joins", t); }, kGoodbye, true,
       [this] { joining_.reset(); }},
      {"leave",
       [this](T t) {
         const Deadline deadline(t);
         const Status joined = join(leaving_, "leaves", deadline);
         return joined.ok() ? leaving_->leave(deadline.left()) : joined;
       },
       fence + kGoodbye, true, [this] { leaving_.reset(); }},
  };
}

}  // namespace

std::unique_ptr<Caller> makePoolCaller(const Circumstances& circumstances) {
  return std::make_unique<PoolCaller>(circumstances);
}

}  // namespace hmc::test
