#include "device_use.h"

// Both of upstream's paths, twice, and the host's header with functions of the same names.
#include <lowlevel/smem_shm_aicore_base_api.h>
#include <smem_shm.h>
#include <smem_shm_aicore_base_api.h>

#include <lowlevel/smem_shm_aicore_base_api.h>
#include <smem_shm_aicore_base_api.h>

namespace {

template <class Scope>
int32_t useScope(const smem_shm_device_context_t& context, int64_t* gva, uint32_t rank,
                 Scope scope) {
  int64_t local[4] = {};
  const smem_shm_copy_params rows = {2, 8, 0, 8};
  int32_t sum = smem_shm_put(context, gva, local, rank, 4, scope) +
                smem_shm_get(context, gva, local, rank, 4, scope) +
                smem_shm_put(gva, local, rank, 4, 1, scope) +
                smem_shm_get(gva, local, rank, 4, 1, scope);
  smem_shm_copy_gm2ub(local, gva, sizeof(local), scope);
  smem_shm_copy_ub2gm(gva, local, sizeof(local), scope);
  smem_shm_copy_gm2gm(gva + 4, gva, sizeof(local), scope);
  smem_shm_copy_gm2ub(local, gva, rows, scope);
  smem_shm_copy_ub2gm(gva, local, rows, scope);
  smem_shm_copy_gm2gm(gva + 8, gva, rows, scope);
  sum += smem_shm_barrier_all(context, 1000, scope) + smem_shm_barrier_all(1, 1000, scope);
  return sum;
}

}  // namespace

uint32_t rankInOtherFile(uint32_t id) {
  return smem_shm_get_global_rank(id);
}

int32_t useAll(const smem_shm_device_context_t& context, int64_t* gva, uint32_t rank) {
  smem_shm_t handle = nullptr;
  int64_t local[4] = {};
  uint32_t sum = smem_shm_get_global_rank() + smem_shm_get_global_rank(0) +
                 smem_shm_get_global_rank(1L) + smem_shm_get_global_rank(handle) +
                 smem_shm_get_global_rank(nullptr) + smem_shm_get_global_rank(context) +
                 smem_shm_get_global_rank_size() + smem_shm_get_global_rank_size(0) +
                 smem_shm_get_global_rank_size(handle) + smem_shm_get_global_rank_size(context) +
                 smem_shm_get_extra_context_size() + smem_shm_get_extra_context_size(context);
  sum +=
      static_cast<uint32_t>(smem_shm_get_symmetric_size() + smem_shm_get_symmetric_size(context));
  if (!smem_shm_get_extra_context_addr() || !smem_shm_get_extra_context_addr(context)) ++sum;
  if (!smem_shm_ptr(gva, rank) || !smem_shm_ptr(context, gva, rank)) ++sum;
  smem_shm_copy_gm2ub<int64_t>(local, gva, 8, false);
  smem_shm_copy_ub2gm<int64_t>(gva, local, 8, false);
  smem_shm_copy_gm2gm<int64_t>(gva + 1, gva, 8);
  smem_shm_set_copy_ubuf(local, sizeof(local));
  smem_shm_unset_copy_ubuf();
  int32_t codes =
      smem_shm_put_int64_t(gva, local, rank, 1) + smem_shm_get_int64(gva, local, rank, 1) +
      smem_shm_uput_int64(gva, local, rank, 1) + smem_shm_uget_int64_t(gva, local, rank, 1);
  codes += useScope(context, gva, rank, smem_shm_thread()) +
           useScope(context, gva, rank, smem_shm_warp()) +
           useScope(context, gva, rank, smem_shm_block());
  smem_shm_set_flag(gva, 1);
  smem_shm_set_flag(local, gva, 1);
  codes += smem_shm_wait_flag(gva, 0) + smem_shm_wait_flag(local, gva, 0) +
           smem_shm_wait_flag(gva, 0, 1) + smem_shm_wait_flag(local, gva, 0, 1) +
           smem_shm_wait_at_least(gva, 0, 1);
  smem_shm_store(gva, smem_shm_load(gva) + smem_shm_atomic_add(gva, 1) +
                          smem_shm_atomic_cas(gva, 0, 1) + smem_shm_atomic_exchange(gva, 1));
  smem_shm_fence();
  smem_shm_quiet();
  return codes + static_cast<int32_t>(sum) + smem_shm_bind(handle) +
         smem_shm_bind_context(0, context) + smem_shm_unbind(0);
}
