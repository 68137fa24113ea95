#pragma once

#include <memory>

#include "hmc/deadline.h"
#include "node/remote_mapping.h"

namespace hmc {

struct PipelineOptions {
  size_t chunk = 0;       // bytes; 0: 4 MiB
  size_t mostAtOnce = 1;  // chunks under way
};

// putPipeline() and getPipeline(): one transfer as chunks, each of which starts when another has
// ended. Returns when no byte of it moves any more; after a failure no further chunk starts.
Status runPipeline(OpKind kind, const std::shared_ptr<LocalMemory>& local,
                   const std::shared_ptr<RemoteMapping>& remote, const Block& block,
                   const PipelineOptions& options, Deadline deadline);

}  // namespace hmc
