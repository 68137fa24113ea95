#include "smem/host/smem_bm_v2.h"

#include <cstring>

#include "capi/bm_start.h"
#include "capi/call.h"
#include "capi/pool_making.h"

namespace {

using namespace hmc;        // NOLINT(google-build-using-namespace)
using namespace hmc::capi;  // NOLINT(google-build-using-namespace)

constexpr uint32_t kNumaMask = (1U << SMEM_BM_BIND_NUMA_FLAG_LEN) - 1;

// Of our own slot or of everybody's: one address space, so only the kind counts.
std::optional<PoolSpace> spaceOf(smem_bm_mem_type type) {
  switch (type) {
    case SMEM_MEM_TYPE_LOCAL_DEVICE:
    case SMEM_MEM_TYPE_DEVICE:
      return PoolSpace::device;
    case SMEM_MEM_TYPE_LOCAL_HOST:
    case SMEM_MEM_TYPE_HOST:
      return PoolSpace::host;
    default:
      return std::nullopt;
  }
}

int32_t badMemType(smem_bm_mem_type type) {
  return fail(SMEM_INVALID_PARAM, fmt::format("{} is no type of memory: they are 0 to {}",
                                              static_cast<int>(type), SMEM_MEM_TYPE_BUTT - 1));
}

// What the configuration says counts before what the program has set for everything.
Result<pool::Protection> protectionFrom(const smem_bm_config_v2_t& config) {
  pool::Protection protection = Library::get().tls.protection();
  if (config.storeTlsConfig.tlsEnable) {
    HMC_ASSIGN(protection.store, tlsFrom(config.storeTlsConfig));
  }
  if (config.hcomTlsConfig.tlsEnable) {
    HMC_ASSIGN(protection.peers, tlsFrom(config.hcomTlsConfig));
  }
  return protection;
}

// The elements of a batch, each checked by its own addresses.
Result<std::vector<PoolCopy>> readBatch(const BigMemory& pool, const smem_batch_copy_params& batch,
                                        CopyType type) {
  std::vector<PoolCopy> copies;
  copies.reserve(batch.batchSize);
  for (uint32_t i = 0; i < batch.batchSize; ++i) {
    const PoolCopy one{batch.destinations[i], batch.sources[i], batch.dataSizes[i]};
    Status wrong;
    if (!one.to || !one.from || one.size == 0)
      wrong = error(Code::invalidArgument, "an address is NULL or the size is 0");
    if (wrong.ok()) wrong = pool.checkType(one.from, one.to, type);
    if (!wrong.ok()) return wrong.within(fmt::format("element {} of the batch", i));
    copies.push_back(one);
  }
  return copies;
}

}  // namespace

extern "C" {

int32_t smem_bm_config_init_v2(smem_bm_config_v2_t* config) {
  if (!config) return nullArgument("config");
  std::memset(config, 0, sizeof(*config));
  config->initTimeout = kDefaultSeconds;
  config->createTimeout = kDefaultSeconds;
  config->controlOperationTimeout = kDefaultSeconds;
  config->startConfigStoreServer = true;
  config->unifiedAddressSpace = true;
  config->autoRanking = true;
  config->rankId = kNoRank;
  return SMEM_OK;
}

int32_t smem_bm_init_v2(const char* storeURL, uint32_t worldSize, uint16_t deviceId,
                        const smem_bm_config_v2_t* config) {
  return call([&]() -> int32_t {
    if (!config) return nullArgument("config");
    const auto protection = protectionFrom(*config);
    if (!protection.ok()) return fail(protection.status());
    const std::string listen(config->hcomUrl, strnlen(config->hcomUrl, sizeof(config->hcomUrl)));
    return startBm(
        storeURL, worldSize, deviceId,
        {config->initTimeout, config->createTimeout, config->controlOperationTimeout,
         config->startConfigStoreServer, config->startConfigStoreOnly, config->unifiedAddressSpace,
         config->autoRanking, config->rankId, listen, *protection});
  });
}

int32_t smem_bm_join_v2(smem_bm_t handle, uint32_t /*flags*/) {
  return withPool(handle, [](BigMemory& pool) { return finish(pool.join()); });
}

smem_bm_t smem_bm_create2(uint32_t id, const smem_bm_create_option_t* option) {
  if (!option) {
    nullArgument("option");
    return nullptr;
  }
  PoolSizes sizes;
  sizes.local = {option->localDRAMSize, option->localHBMSize};
  sizes.most = {option->maxDramSize, option->maxHbmSize};
  const uint32_t node = option->flags & kNumaMask;
  const bool fromFile = (option->flags & SMEM_BM_FLAG_CREATE_WITH_SHM) != 0;
  if (fromFile) sizes.hostFile = option->dramShmFd;
  // With no other bit than that one, node 0 was hardly meant.
  if ((option->flags & ~SMEM_BM_FLAG_CREATE_WITH_SHM) != 0 && node != kNumaMask)
    sizes.numaNode = static_cast<int>(node);
  return makePool(id, sizes);
}

uint64_t smem_bm_get_local_mem_size_by_mem_type(smem_bm_t handle, smem_bm_mem_type type) {
  uint64_t size = 0;
  withPool(handle, [&](BigMemory& pool) -> int32_t {
    const auto space = spaceOf(type);
    if (!space) return badMemType(type);
    size = pool.localSize(*space);
    return SMEM_OK;
  });
  return size;
}

void* smem_bm_ptr_by_mem_type(smem_bm_t handle, smem_bm_mem_type type, uint16_t peerRankId) {
  void* address = nullptr;
  withPool(handle, [&](BigMemory& pool) -> int32_t {
    const auto space = spaceOf(type);
    if (!space) return badMemType(type);
    if (peerRankId >= pool.ranks()) return rankTooHigh(peerRankId, pool.ranks());
    if (!pool.has(*space)) {
      return fail(SMEM_INVALID_PARAM,
                  fmt::format("pool {} has no {} slots", pool.id(), pool::nameOf(*space)));
    }
    address = pool.address(*space, peerRankId);
    return SMEM_OK;
  });
  return address;
}

int32_t smem_bm_copy_v2(smem_bm_t handle, smem_copy_params* params, smem_bm_copy_type t,
                        uint32_t flags) {
  if (!params) return nullArgument("params");
  void* source = const_cast<void*>(params->src);  // NOLINT: only read
  uint64_t size = params->dataSize;
  smem_batch_copy_params one{&source, &params->dest, &size, 1};
  return smem_bm_copy_batch(handle, &one, t, flags);
}

int32_t smem_bm_copy_batch(smem_bm_t handle, smem_batch_copy_params* params, smem_bm_copy_type t,
                           uint32_t flags) {
  return withJoined(handle, [&](BigMemory& pool) -> int32_t {
    if (!params) return nullArgument("params");
    if (!params->sources) return nullArgument("sources");
    if (!params->destinations) return nullArgument("destinations");
    if (!params->dataSizes) return nullArgument("dataSizes");
    if (params->batchSize == 0) return fail(SMEM_INVALID_PARAM, "the batch is empty");
    auto copies = readBatch(pool, *params, t);
    if (!copies.ok()) return fail(copies.status());
    if ((flags & ASYNC_COPY_FLAG) != 0) return finish(pool.startAll(*copies));
    return finish(copies->size() == 1 ? pool.copy(copies->front()) : pool.copyAll(*copies));
  });
}

int32_t smem_bm_wait(smem_bm_t handle) {
  return withPool(handle, [](BigMemory& pool) { return finish(pool.wait()); });
}

int32_t smem_bm_register_user_mem(smem_bm_t handle, uint64_t addr, uint64_t size) {
  return withPool(handle, [&](BigMemory& pool) -> int32_t {
    if (addr == 0) return nullArgument("addr");
    if (size == 0) return fail(SMEM_INVALID_PARAM, "the memory has 0 bytes");
    auto* const data = reinterpret_cast<void*>(addr);  // NOLINT(performance-no-int-to-ptr)
    return finish(pool.registerMemory(data, size));
  });
}

int32_t smem_bm_unregister_user_mem(smem_bm_t handle, uint64_t addr) {
  return withPool(handle, [&](BigMemory& pool) {
    auto* const data = reinterpret_cast<void*>(addr);  // NOLINT(performance-no-int-to-ptr)
    return finish(pool.unregisterMemory(data));
  });
}

uint32_t smem_bm_get_rank_id_by_gva(smem_bm_t handle, void* gva) {
  uint32_t rank = UINT32_MAX;
  withPool(handle, [&](BigMemory& pool) -> int32_t {
    const auto found = pool.rankOf(gva);
    if (!found.ok()) return fail(found.status());
    rank = *found;
    return SMEM_OK;
  });
  return rank;
}

}  // extern "C"
