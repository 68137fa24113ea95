#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hmc/device.h"
#include "hmc/result.h"
#include "memory/backend.h"
#include "transport/transport.h"

namespace hmc::ipc {

inline constexpr size_t kNonceSize = 16;
inline constexpr size_t kTokenSize = 16;  // of an FdExchange

// What a Registration tells the peer: every path that leads to the memory.
struct Key {
  Access access = Access::read;
  Device device;    // its index is the owner's
  DeviceUuid uuid;  // which device that is for everybody
  uint64_t size = 0;
  std::string exchange;  // the FdExchange that all tokens here belong to
  std::string process;   // processNonce() of the owner

  // mapped: the descriptors' tokens and the vendor's handle; when it cannot be shared both are
  // empty, and the reason may be there
  std::vector<std::string> shareTokens;
  std::string shareHandle;
  uint64_t shareOffset = 0;
  std::string notShared;

  // process_vm, and the same process: where it lies, and proof that the pid is the one we mean
  bool processVm = false;
  pid_t pid = 0;
  uint64_t address = 0;
  uint64_t nonceAddress = 0;
  std::string nonce;

  // ring: the owner's ServicePage and the number under which its service knows the region; no token
  // when there is none
  std::string pageToken;
  uint64_t region = 0;
};

std::string encode(const Key& key);
Result<Key> decodeKey(std::string_view bytes);

// What a Link tells the peer's Link.
struct Address {
  std::string exchange;
  std::string process;
  std::string link;  // random: only a peer that we gave it to knows it
};

std::string encode(const Address& address);
Result<Address> decodeAddress(std::string_view bytes);

// Random, the same for everything in this process, another in every other one.
std::string processNonce();

}  // namespace hmc::ipc
