#include "smem/host/smem_bm.h"

#include <optional>

#include "capi/bm_start.h"
#include "capi/call.h"
#include "capi/pool_making.h"

namespace {

using namespace hmc;        // NOLINT(google-build-using-namespace)
using namespace hmc::capi;  // NOLINT(google-build-using-namespace)

Status checkEnds(const void* src, const void* dest) {
  if (!src) return error(Code::invalidArgument, "src is NULL");
  if (!dest) return error(Code::invalidArgument, "dest is NULL");
  return Status();
}

}  // namespace

extern "C" {

int32_t smem_bm_config_init(smem_bm_config_t* config) {
  if (!config) return nullArgument("config");
  *config = {kDefaultSeconds,
             kDefaultSeconds,
             kDefaultSeconds,
             true,
             false,
             false,
             true,
             false,
             kNoRank,
             0};
  return SMEM_OK;
}

int32_t smem_bm_init(const char* storeURL, uint32_t worldSize, uint16_t deviceId,
                     const smem_bm_config_t* config) {
  return call([&]() -> int32_t {
    if (!config) return nullArgument("config");
    return startBm(
        storeURL, worldSize, deviceId,
        {config->initTimeout, config->createTimeout, config->controlOperationTimeout,
         config->startConfigStore, config->startConfigStoreOnly, config->unifiedAddressSpace,
         config->autoRanking, config->rankId, "", Library::get().tls.protection()});
  });
}

void smem_bm_uninit(uint32_t /*flags*/) {
  closing([](Library& library) { library.closeBm(); });
}

uint32_t smem_bm_get_rank_id(void) {
  const auto session = Library::get().bm();
  if (!session) notInitialised("smem_bm_init");
  return session ? session->world->rank().value_or(UINT32_MAX) : UINT32_MAX;
}

smem_bm_t smem_bm_create(uint32_t id, uint32_t /*memberSize*/, smem_bm_data_op_type /*dataOpType*/,
                         uint64_t localDRAMSize, uint64_t localHBMSize, uint32_t /*flags*/) {
  PoolSizes sizes;
  sizes.local = {localDRAMSize, localHBMSize};
  return makePool(id, sizes);
}

void smem_bm_destroy(smem_bm_t handle) {
  call([&]() -> int32_t {
    Library::get().destroyPool(handle);
    return SMEM_OK;
  });
}

int32_t smem_bm_join(smem_bm_t handle, uint32_t /*flags*/, void** localGvaAddress) {
  return withPool(handle, [&](BigMemory& pool) -> int32_t {
    if (!localGvaAddress) return nullArgument("localGvaAddress");
    if (Status joined = pool.join(); !joined.ok()) return fail(joined);
    *localGvaAddress = pool.address(pool.mainSpace(), pool.ownRank());
    return SMEM_OK;
  });
}

int32_t smem_bm_leave(smem_bm_t handle, uint32_t /*flags*/) {
  return withJoined(handle, [](BigMemory& pool) { return finish(pool.leave()); });
}

uint64_t smem_bm_get_local_mem_size(smem_bm_t handle) {
  uint64_t size = 0;
  withPool(handle, [&](BigMemory& pool) -> int32_t {
    size = pool.localSize(pool.mainSpace());
    return SMEM_OK;
  });
  return size;
}

void* smem_bm_ptr(smem_bm_t handle, uint16_t peerRankId) {
  void* address = nullptr;
  withPool(handle, [&](BigMemory& pool) -> int32_t {
    if (peerRankId >= pool.ranks()) return rankTooHigh(peerRankId, pool.ranks());
    address = pool.address(pool.mainSpace(), peerRankId);
    return SMEM_OK;
  });
  return address;
}

int32_t smem_bm_copy(smem_bm_t handle, const void* src, void* dest, uint64_t size,
                     smem_bm_copy_type t, uint32_t /*flags*/) {
  return withJoined(handle, [&](BigMemory& pool) -> int32_t {
    if (Status bad = checkEnds(src, dest); !bad.ok()) return fail(bad);
    if (size == 0) return fail(SMEM_INVALID_PARAM, "a copy of 0 bytes");
    if (Status wrong = pool.checkType(src, dest, t); !wrong.ok()) return fail(wrong);
    return finish(pool.copy({dest, src, size}));
  });
}

int32_t smem_bm_copy_2d(smem_bm_t handle, const void* src, uint64_t spitch, void* dest,
                        uint64_t dpitch, uint64_t width, uint64_t height, smem_bm_copy_type t,
                        uint32_t /*flags*/) {
  return withJoined(handle, [&](BigMemory& pool) -> int32_t {
    if (Status bad = checkEnds(src, dest); !bad.ok()) return fail(bad);
    if (width == 0 || height == 0) {
      return fail(SMEM_INVALID_PARAM,
                  fmt::format("a copy of {} rows of {} bytes is empty", height, width));
    }
    if (Status wrong = pool.checkType(src, dest, t); !wrong.ok()) return fail(wrong);
    return finish(pool.copyRows({src, spitch, dest, dpitch, width, height}));
  });
}

}  // extern "C"
