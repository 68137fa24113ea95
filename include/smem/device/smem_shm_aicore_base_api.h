#ifndef SMEM_SHM_AICORE_BASE_API_H
#define SMEM_SHM_AICORE_BASE_API_H

/* Upstream's name for the device side of Share Memory. */
#include "smem_shm_device.h"

#endif
