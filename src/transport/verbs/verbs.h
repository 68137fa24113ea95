#pragma once

#include <memory>

#include "hmc/result.h"
#include "transport/transport.h"

// Put and get by RDMA: reliable connections of libibverbs, which is loaded at run time.
namespace hmc::verbs {

struct VerbsOptions {
  // Queue pairs per peer and direction, over all NICs.
  int channels = 1;
};

// `unsupported` with the reason where there is no library, no device or no active port.
Result<std::unique_ptr<Transport>> create(const VerbsOptions& options = {});

}  // namespace hmc::verbs
