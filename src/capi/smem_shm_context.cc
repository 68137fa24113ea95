#include "smem/host/smem_shm_context.h"

#include "capi/call.h"

namespace {

using namespace hmc;        // NOLINT(google-build-using-namespace)
using namespace hmc::capi;  // NOLINT(google-build-using-namespace)

smem_shm_device_context_t contextOf(const pool::DeviceSide& side) {
  const pool::SymmetricOptions& options = side.options();
  smem_shm_device_context_t context{};
  context.id = options.id;
  context.rank = options.rank;
  context.rankSize = options.ranks;
  context.device = options.device.isHost() ? -1 : options.device.index;
  context.symmetricSize = options.size;
  context.base = side.base();
  context.extraContext = side.page().context;
  context.extraContextSize = reinterpret_cast<const uint32_t*>(&side.page().contextSize);
  context.sync = side.sync();
  context.syncStride = side.syncStride();
  context.reach = side.reach();
  return context;
}

}  // namespace

extern "C" {

int32_t smem_shm_get_device_context(smem_shm_t handle, smem_shm_device_context_t* context,
                                    uint32_t contextSize) {
  return withObject(handle, [&](SharedMemory& object) -> int32_t {
    if (!context) return nullArgument("context");
    if (contextSize != sizeof(*context)) {
      return fail(SMEM_INVALID_PARAM,
                  fmt::format("contextSize is {}, and this library's contexts have {} bytes: "
                              "compile against its headers",
                              contextSize, sizeof(*context)));
    }
    std::lock_guard lock(object.mutex);
    if (!object.device) {
      auto made = pool::DeviceSide::open(*object.memory);
      if (!made.ok()) return fail(made.status());
      object.device = *std::move(made);
    }
    *context = contextOf(*object.device);
    return SMEM_OK;
  });
}

}  // extern "C"
