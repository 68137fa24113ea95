#pragma once

#include <smem_shm_context.h>

// Of another file than the one that binds: smem_shm_get_global_rank(id).
uint32_t rankInOtherFile(uint32_t id);
// Every function of the header once, by id and by context, in all scopes. Only to be compiled.
int32_t useAll(const smem_shm_device_context_t& context, int64_t* gva, uint32_t rank);
