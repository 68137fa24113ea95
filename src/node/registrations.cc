#include "node/registrations.h"

namespace hmc {

Registrations::Registrations(const Engines& engines, const Region& region, Access access)
    : engines_(engines), region_(region), access_(access), entries_(engines.size()) {}

// What cannot be registered stays out of peers' reach over that transport; our own transfers from
// it can still pass through slots that can.
void Registrations::make(Lazy& lazy, size_t transport) const {
  std::call_once(lazy.once, [&] {
    const Engine& engine = *engines_[transport];
    lazy.entry.staged = !engine.touches(region_.device.kind);
    auto registration = engine.transport().registerRegion(region_, access_);
    if (registration.ok()) {
      lazy.entry.registration = *std::move(registration);
    } else {
      lazy.entry.why = registration.status();
      lazy.entry.staged = true;
    }
    lazy.made.store(true, std::memory_order_release);
  });
}

}  // namespace hmc
