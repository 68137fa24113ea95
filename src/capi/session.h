#pragma once

#include <chrono>
#include <memory>

#include "hmc/device.h"
#include "pool/world.h"

namespace hmc::capi {

// What smem_bm_init() or smem_shm_init() made, until uninit. Constant.
struct Session {
  std::unique_ptr<pool::World> world;
  Device device;
  std::chrono::seconds createTimeout{};
  std::chrono::seconds operationTimeout{};
  std::string listen;  // of pools
};

}  // namespace hmc::capi
