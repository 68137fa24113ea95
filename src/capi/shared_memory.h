#pragma once

#include <memory>
#include <mutex>

#include "capi/session.h"
#include "pool/device_side.h"
#include "pool/symmetric.h"

namespace hmc::capi {

// An object of smem_shm_create().
struct SharedMemory {
  std::shared_ptr<const Session> session;
  std::unique_ptr<pool::Symmetric> memory;
  std::mutex mutex;
  std::unique_ptr<pool::DeviceSide> device;  // guarded by mutex; made when it is first asked for
};

}  // namespace hmc::capi
