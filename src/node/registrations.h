#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "transfer/engine.h"
#include "transport/transport.h"

namespace hmc {

using Engines = std::vector<std::unique_ptr<Engine>>;

// One memory, registered with each transport of a Node when it is first used there. Safe from any
// thread.
class Registrations {
 public:
  // `engines` must outlive it.
  Registrations(const Engines& engines, const Region& region, Access access, Exposure exposure)
      : engines_(engines),
        region_(region),
        access_(access),
        exposure_(exposure),
        entries_(engines.size()) {}

  struct Entry {
    std::unique_ptr<Registration> registration;  // none when `why` says so
    Status why;
    bool staged = false;  // transfers from here go through slots of the host
  };
  // With the Node's i-th transport.
  const Entry& through(size_t transport) const {
    Lazy& lazy = entries_[transport];
    if (!lazy.made.load(std::memory_order_acquire)) make(lazy, transport);
    return lazy.entry;
  }
  // Has through() an answer at hand?
  bool has(size_t transport) const {
    return entries_[transport].made.load(std::memory_order_acquire);
  }
  // Ends all of them. Nobody uses them any more.
  void clear() { entries_.clear(); }

 private:
  struct Lazy {
    std::mutex mutex;               // not a once_flag, whose end is a call of the kernel
    std::atomic<bool> made{false};  // spares through() the mutex, which costs as much as a copy
    Entry entry;                    // set once
  };
  // What cannot be registered stays out of peers' reach over that transport; our own transfers from
  // it can still pass through slots that can.
  void make(Lazy& lazy, size_t transport) const {
    std::lock_guard lock(lazy.mutex);
    if (lazy.made.load(std::memory_order_relaxed)) return;
    const Engine& engine = *engines_[transport];
    lazy.entry.staged = !engine.touches(region_.device.kind);
    auto registration = engine.transport().registerRegion(region_, access_, exposure_);
    if (registration.ok()) {
      lazy.entry.registration = *std::move(registration);
    } else {
      lazy.entry.why = registration.status();
      lazy.entry.staged = true;
    }
    lazy.made.store(true, std::memory_order_release);
  }

  const Engines& engines_;
  const Region region_;
  const Access access_;
  const Exposure exposure_;
  mutable std::vector<Lazy> entries_;
};

}  // namespace hmc
