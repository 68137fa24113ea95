#include "smem/host/smem_shm_v2.h"

#include <cstring>

#include "capi/call.h"

namespace {

using namespace hmc;        // NOLINT(google-build-using-namespace)
using namespace hmc::capi;  // NOLINT(google-build-using-namespace)

constexpr size_t kLongestKey = 63;

Status checkKey(const char* key) {
  if (!key) return error(Code::invalidArgument, "key is NULL");
  const size_t length = strnlen(key, kLongestKey + 1);
  if (length > 0 && length <= kLongestKey) return Status();
  return error(Code::invalidArgument, "a key has 1 to {} characters, not {}", kLongestKey, length);
}

}  // namespace

extern "C" {

int32_t smem_shm_subgroup_barrier(smem_shm_t handle, const char* key, uint32_t rankSize,
                                  uint32_t rankId) {
  return withObject(handle, [&](SharedMemory& object) -> int32_t {
    if (Status bad = checkKey(key); !bad.ok()) return fail(bad);
    return finish(
        object.memory->barrierOf({key, rankId, rankSize}, object.session->operationTimeout));
  });
}

int32_t smem_shm_subgroup_allgather(smem_shm_t handle, const char* key, uint32_t rankSize,
                                    uint32_t rankId, const char* sendBuf, uint32_t sendSize,
                                    char* recvBuf, uint32_t recvSize) {
  return withObject(handle, [&](SharedMemory& object) -> int32_t {
    if (Status bad = checkKey(key); !bad.ok()) return fail(bad);
    if (!sendBuf) return nullArgument("sendBuf");
    if (!recvBuf) return nullArgument("recvBuf");
    if (recvSize != uint64_t{sendSize} * rankSize) {
      return fail(SMEM_INVALID_PARAM,
                  fmt::format("recvSize is {}, not {} x {}", recvSize, sendSize, rankSize));
    }
    return finish(object.memory->allgatherOf({key, rankId, rankSize}, sendBuf, sendSize, recvBuf,
                                             object.session->operationTimeout));
  });
}

int32_t smem_shm_atomic_alloc_value(smem_shm_t handle, uint32_t limit, uint32_t* retVal) {
  return withObject(handle, [&](SharedMemory& object) -> int32_t {
    if (!retVal) return nullArgument("retVal");
    if (limit == 0 || limit > SMEM_SHM_ATOMIC_NUM_LIMIT) {
      return fail(SMEM_INVALID_PARAM, fmt::format("a limit of {} cannot be: 1 to {}", limit,
                                                  SMEM_SHM_ATOMIC_NUM_LIMIT));
    }
    const auto taken = object.memory->takeNumber(limit, object.session->operationTimeout);
    if (!taken.ok()) return fail(taken.status());
    *retVal = *taken;
    return SMEM_OK;
  });
}

int32_t smem_shm_atomic_release_value(smem_shm_t handle, int32_t value) {
  return withObject(handle, [&](SharedMemory& object) -> int32_t {
    if (value < 0 || static_cast<uint32_t>(value) >= SMEM_SHM_ATOMIC_NUM_LIMIT) {
      return fail(SMEM_INVALID_PARAM, fmt::format("the number {} cannot be: 0 to {}", value,
                                                  SMEM_SHM_ATOMIC_NUM_LIMIT - 1));
    }
    return finish(object.memory->giveNumberBack(static_cast<uint32_t>(value),
                                                object.session->operationTimeout));
  });
}

int32_t smem_shm_register_exit(smem_shm_t handle, void (*onExit)(int)) {
  return withObject(handle, [&](SharedMemory& object) -> int32_t {
    if (!onExit) return nullArgument("onExit");
    return finish(object.memory->onTold([onExit](int status) {
      const InCallback callback;
      onExit(status);
    }));
  });
}

void smem_shm_global_exit(smem_shm_t handle, int status) {
  withObject(handle, [&](SharedMemory& object) {
    return finish(object.memory->tellAll(status, object.session->operationTimeout));
  });
}

}  // extern "C"
