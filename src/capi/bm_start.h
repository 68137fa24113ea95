#pragma once

#include <cstdint>
#include <string>

#include "pool/world.h"

namespace hmc::capi {

// What both forms of smem_bm_config_t say.
struct BmSettings {
  uint32_t initTimeout;
  uint32_t createTimeout;
  uint32_t operationTimeout;
  bool serve;
  bool serveOnly;
  bool unified;
  bool autoRank;
  uint16_t rank;
  std::string listen;  // empty: from where the store is reached
  pool::Protection protection{};
};

// smem_bm_init().
int32_t startBm(const char* url, uint32_t worldSize, uint16_t deviceId, const BmSettings& settings);

}  // namespace hmc::capi
