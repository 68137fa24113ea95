#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hmc/device.h"
#include "hmc/result.h"
#include "memory/backend.h"
#include "transport/transport.h"

namespace hmc::ipc {

inline constexpr size_t kNonceSize = 16;
inline constexpr size_t kTokenSize = 16;  // of an FdExchange

// What travels through the control connection, to whoever asks: a name for the memory that is worth
// nothing without a link whose two ends have proven themselves to each other.
struct Key {
  std::string token;
};

std::string encode(const Key& key);
Result<Key> decodeKey(std::string_view bytes);

// What the owner tells such a peer, from process to process: every path that leads to the memory.
// Descriptors come with it: those of the share, then that of the owner's ServicePage.
struct Description {
  Access access = Access::read;
  Device device;    // its index is the owner's
  DeviceUuid uuid;  // which device that is for everybody
  uint64_t size = 0;

  // mapped: how many descriptors, and the vendor's handle; when it cannot be shared there are none,
  // and the reason may be there
  uint32_t shareFds = 0;
  std::string shareHandle;
  uint64_t shareOffset = 0;
  std::string notShared;

  // process_vm, and the same process: where it lies, and bytes at a place that show that the
  // process is the one that the kernel named
  bool processVm = false;
  uint64_t address = 0;
  uint64_t nonceAddress = 0;
  std::string nonce;

  // ring: whether the ServicePage is there, and the number under which the owner's service knows
  // the region
  bool page = false;
  uint64_t region = 0;

  bool isShared() const { return shareFds > 0 || !shareHandle.empty(); }
};

std::string encode(const Description& description);
Result<Description> decodeDescription(std::string_view bytes);

// What a Link tells the peer's Link.
struct Address {
  std::string exchange;  // the FdExchange of the link's process
  std::string link;      // the token that the link serves there
};

std::string encode(const Address& address);
Result<Address> decodeAddress(std::string_view bytes);

}  // namespace hmc::ipc
