#include "fakes/inprocess_transport.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <set>

#include "base/codec.h"
#include "base/error.h"
#include "memory/backend.h"
#include "memory/copy.h"
#include "transport/check.h"

namespace hmc::fakes {

class InProcessWire {
 public:
  struct Area {
    Region region;
    Access access;
  };

  // Guards everything below and every queue of every link. It is held during copies: whoever has
  // it knows that no byte moves.
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t nextId = 1;
  std::map<uint64_t, Area> areas;
  std::set<uint64_t> openLinks;
};

std::shared_ptr<InProcessWire> makeInProcessWire() {
  return std::make_shared<InProcessWire>();
}

namespace {

constexpr uint32_t kAddressMagic = 0x61706e69;
constexpr uint32_t kKeyMagic = 0x6b706e69;

class InProcessRegistration : public Registration {
 public:
  InProcessRegistration(std::shared_ptr<InProcessWire> wire, Region what, Access how,
                        std::shared_ptr<std::atomic<int>> live)
      : Registration(what, how), wire_(std::move(wire)), live_(std::move(live)) {
    ++*live_;
    std::lock_guard lock(wire_->mutex);
    id_ = wire_->nextId++;
    wire_->areas[id_] = {region, access};
    key_ = Writer().u32(kKeyMagic).u64(id_).u64(region.size).u8(uint8_t(access)).take();
  }
  ~InProcessRegistration() override {
    std::lock_guard lock(wire_->mutex);
    wire_->areas.erase(id_);
    --*live_;
  }
  const std::string& key() const override { return key_; }

 private:
  const std::shared_ptr<InProcessWire> wire_;
  const std::shared_ptr<std::atomic<int>> live_;
  uint64_t id_ = 0;
  std::string key_;
};

struct InProcessRemote : RemoteMemory {
  InProcessRemote(uint64_t remote, uint64_t bytes, Access allowed, std::string slower)
      : RemoteMemory(bytes, allowed, {}, {"", std::move(slower)}), id(remote) {}
  const uint64_t id;
};

// Copies one operation. The wire's mutex is held.
Status execute(InProcessWire& wire, const Op& op) {
  auto area = wire.areas.find(static_cast<const InProcessRemote*>(op.remote)->id);
  if (area == wire.areas.end()) {
    return error(Code::notFound, "the peer's memory is no longer registered");
  }
  const Region& whole = area->second.region;
  if (!fits(op.remoteOffset, op.size, whole.size)) {
    return error(Code::outOfRange, "{} bytes at offset {} pass the end of {} bytes", op.size,
                 op.remoteOffset, whole.size);
  }
  if (op.kind == OpKind::put && area->second.access == Access::read) {
    return error(Code::permissionDenied, "the peer's memory is read-only");
  }
  Region remote = whole.slice(op.remoteOffset, op.size);
  Region local{op.local, op.size, op.registration->region.device};
  return op.kind == OpKind::put ? copy(remote, local) : copy(local, remote);
}

class InProcessLink : public Link {
 public:
  // `links` is the transport's list, guarded by the wire's mutex.
  InProcessLink(std::shared_ptr<InProcessWire> wire, const InProcessOptions& options,
                std::list<InProcessLink*>& links)
      : wire_(std::move(wire)),
        window_(options.window),
        slowerBecause_(options.slowerBecause),
        links_(links) {
    std::lock_guard lock(wire_->mutex);
    id_ = wire_->nextId++;
    wire_->openLinks.insert(id_);
    address_ = Writer().u32(kAddressMagic).u64(id_).take();
    links_.push_back(this);
  }
  ~InProcessLink() override {
    close(error(Code::cancelled, "the link was destroyed"));
    std::lock_guard lock(wire_->mutex);
    links_.remove(this);
  }

  const std::string& address() const override { return address_; }

  Status connect(std::string_view peerAddress) override {
    Reader reader(peerAddress);
    const uint32_t magic = reader.u32();
    const uint64_t peer = reader.u64();
    HMC_TRY(reader.finish("an in-process address"));
    if (magic != kAddressMagic) return error(Code::invalidArgument, "not an in-process address");
    std::lock_guard lock(wire_->mutex);
    peer_ = peer;
    wire_->changed.notify_all();
    return Status();
  }

  Result<std::unique_ptr<RemoteMemory>> importKey(std::string_view key, Deadline,
                                                  void* place) override {
    HMC_TRY(checkPlace(place, "inprocess"));
    Reader reader(key);
    const uint32_t magic = reader.u32();
    const uint64_t id = reader.u64();
    const uint64_t size = reader.u64();
    const uint8_t access = reader.u8();
    HMC_TRY(reader.finish("an in-process key"));
    if (magic != kKeyMagic || access > 1) {
      return error(Code::invalidArgument, "not an in-process key");
    }
    return std::unique_ptr<RemoteMemory>(
        new InProcessRemote(id, size, Access{access}, slowerBecause_));
  }

  size_t post(std::span<const Op> ops) override {
    std::lock_guard lock(wire_->mutex);
    if (!closed_.ok()) {
      for (const Op& op : ops) op.completion->fail(closed_);
      return ops.size();
    }
    const size_t count = std::min(ops.size(), window_ - queue_.size());
    queue_.insert(queue_.end(), ops.begin(), ops.begin() + static_cast<long>(count));
    if (count > 0) wire_->changed.notify_all();
    return count;
  }

  void close(const Status& why) override {
    std::lock_guard lock(wire_->mutex);
    if (!closed_.ok()) return;
    closed_ = why;
    wire_->openLinks.erase(id_);
    fail(why);
    wire_->changed.notify_all();
  }

  // The next two are for progress(), with the wire's mutex held.
  bool busy() const { return !queue_.empty() && peer_ != 0; }
  bool step() {
    if (!busy()) return false;
    if (wire_->openLinks.count(peer_) == 0) {
      fail(error(Code::disconnected, "the peer's link is closed"));
      return true;
    }
    Op op = queue_.front();
    queue_.pop_front();
    Status status = execute(*wire_, op);
    status.ok() ? op.completion->finish() : op.completion->fail(status);
    return true;
  }

 private:
  void fail(const Status& why) {
    for (const Op& op : queue_) op.completion->fail(why);
    queue_.clear();
  }

  const std::shared_ptr<InProcessWire> wire_;
  const size_t window_;
  const std::string slowerBecause_;
  std::list<InProcessLink*>& links_;
  std::string address_;
  uint64_t id_ = 0;
  // Guarded by the wire's mutex.
  uint64_t peer_ = 0;
  std::deque<Op> queue_;
  Status closed_;
};

class InProcessTransport : public Transport {
 public:
  InProcessTransport(std::shared_ptr<InProcessWire> wire, InProcessOptions options)
      : Transport({options.name, options.name,
                   // Host-only as RDMA may be: it would use an accelerator's memory if it could.
                   options.hostOnly ? std::vector{DeviceKind::cpu, DeviceKind::cuda}
                                    : std::vector{DeviceKind::cpu},
                   options.largest, options.paths, options.onDemand}),
        wire_(std::move(wire)),
        options_(std::move(options)) {}

  Result<std::unique_ptr<Registration>> registerRegion(const Region& region, Access access,
                                                       Exposure) override {
    options_.registering();
    if (!options_.refusal->ok()) return *options_.refusal;
    if (options_.hostOnly && !region.device.isHost()) {
      return error(Code::unsupported, "{} cannot register {} memory", options_.name,
                   region.device.toString());
    }
    if (region.size > options_.mostRegistered) {
      return error(Code::exhausted, "{} bytes are more than the {} that may be locked", region.size,
                   options_.mostRegistered);
    }
    ++*options_.registered;
    return std::unique_ptr<Registration>(
        new InProcessRegistration(wire_, region, access, options_.live));
  }
  Result<std::unique_ptr<Link>> openLink(const LinkOptions&) override {
    return std::unique_ptr<Link>(new InProcessLink(wire_, options_, links_));
  }

  // One operation per link and call, so that tests see work in progress.
  bool progress(Deadline until) override {
    std::unique_lock lock(wire_->mutex);
    auto busy = [this] {
      return wanted_ ||
             std::any_of(links_.begin(), links_.end(), [](auto* link) { return link->busy(); });
    };
    if (until.at() == Deadline::Clock::time_point::max()) {
      wire_->changed.wait(lock, busy);
    } else if (!wire_->changed.wait_until(lock, until.at(), busy)) {
      return false;
    }
    wanted_ = false;
    bool finished = false;
    for (InProcessLink* link : links_) finished = link->step() || finished;
    return finished;
  }
  void wake() override {
    std::lock_guard lock(wire_->mutex);
    wanted_ = true;
    wire_->changed.notify_all();
  }

 private:
  const std::shared_ptr<InProcessWire> wire_;
  const InProcessOptions options_;
  std::list<InProcessLink*> links_;  // guarded by the wire's mutex
  bool wanted_ = false;              // guarded by the wire's mutex: progress() shall return
};

}  // namespace

Result<std::unique_ptr<Transport>> createInProcess(std::shared_ptr<InProcessWire> wire,
                                                   InProcessOptions options) {
  return std::unique_ptr<Transport>(new InProcessTransport(std::move(wire), std::move(options)));
}

}  // namespace hmc::fakes
