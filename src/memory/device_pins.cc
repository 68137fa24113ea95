#include "memory/device_pins.h"

#include "base/log.h"
#include "memory/backends.h"

namespace hmc {

void DevicePins::pin(const Region& host, Backend& backend) {
  auto [entry, isNew] = pins_.try_emplace(&backend);
  if (!isNew) return;
  auto pinned = backend.pin(host);
  if (pinned.ok()) {
    entry->second = *std::move(pinned);
  } else {
    logDebug("staging {} bytes without pinning them: {}", host.size, pinned.status().message());
  }
}

void DevicePins::pinForAll(const Region& host) {
  for (DeviceKind kind : kDeviceKinds) {
    if (Backend* backend = loadedBackend(kind); backend && kind != DeviceKind::cpu) {
      pin(host, *backend);
    }
  }
}

}  // namespace hmc
