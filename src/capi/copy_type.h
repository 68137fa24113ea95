#pragma once

#include <cstdint>

#include "hmc/device.h"
#include "hmc/result.h"
#include "pool/endpoint.h"

namespace hmc::capi {

// Whose slots and device L and H are measured by.
struct Caller {
  uint32_t rank;
  Device device;
};

// Is a copy between these of that SMEMB_COPY_ type?
Status checkCopyType(const pool::Endpoint& from, const pool::Endpoint& to, uint32_t type,
                     const Caller& caller);

}  // namespace hmc::capi
