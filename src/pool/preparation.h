#pragma once

#include <memory>
#include <optional>

#include "hmc/pool.h"
#include "node/node_impl.h"
#include "pool/address_space.h"
#include "pool/beside.h"

namespace hmc::pool {

// Memory for a slot; the last owner releases it.
Result<std::shared_ptr<const Region>> allocateSlot(PoolSpace space, const Device& device,
                                                   size_t size, std::optional<int> file = {});

// What a process needs to become a member, whatever the store says. It is made beside the questions
// to the store, which mostly wait: providing the pages of the host slot takes longer than they do.
struct Preparation {
  explicit Preparation(const PoolOptions& options);

  Beside<std::shared_ptr<NodeImpl>> node;
  Beside<std::shared_ptr<const Region>> memory;  // the host slot; null where there is none
};

}  // namespace hmc::pool
