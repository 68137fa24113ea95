#include "pool/preparation.h"

#include "base/error.h"
#include "memory/backends.h"
#include "pool/numa.h"

namespace hmc::pool {

namespace {

Result<std::shared_ptr<const Region>> makeHostSlot(size_t size, std::optional<int> file,
                                                   std::optional<int> numaNode) {
  if (size == 0) return std::shared_ptr<const Region>();
  OnNumaNode where(numaNode);
  HMC_TRY(where.status());
  HMC_ASSIGN(auto memory, allocateSlot(PoolSpace::host, Device{}, size, file));
  HMC_TRY(where.keep(*memory));
  return memory;
}

Result<std::shared_ptr<NodeImpl>> makeNode(const NodeOptions& options) {
  if (!options.grantsOnly) return NodeImpl::create(options);
  return error(Code::invalidArgument,
               "members of a pool open each other's slots by name: grantsOnly is for a Node");
}

}  // namespace

Result<std::shared_ptr<const Region>> allocateSlot(PoolSpace space, const Device& device,
                                                   size_t size, std::optional<int> file) {
  HMC_ASSIGN(Backend * backend, findBackend(device));
  auto region = file ? adoptHostMemory(*file, size) : backend->allocate(device.index, size);
  if (!region.ok())
    return region.status().within(fmt::format("the {} slot of the pool", nameOf(space)));
  return std::shared_ptr<const Region>(new Region(*region), [backend](const Region* memory) {
    (void)backend->release(memory->ptr);
    delete memory;
  });
}

Preparation::Preparation(const PoolOptions& options)
    : node("hmc-pool-node", [options = options.node] { return makeNode(options); }),
      memory("hmc-pool-pages",
             [size = options.hostSize, file = options.hostFile, numaNode = options.numaNode] {
               return makeHostSlot(size, file, numaNode);
             }) {}

}  // namespace hmc::pool
