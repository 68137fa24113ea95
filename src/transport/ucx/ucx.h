#pragma once

#include <memory>

#include "hmc/result.h"
#include "transport/transport.h"

// Put and get through UCX, which is loaded at run time and only when it is asked for.
namespace hmc::ucx {

// `unsupported` with the reason where there is no libucp.
Result<std::unique_ptr<Transport>> create();

}  // namespace hmc::ucx
