#include "smem/host/smem_shm.h"

#include "capi/call.h"
#include "capi/pool_making.h"

namespace {

using namespace hmc;        // NOLINT(google-build-using-namespace)
using namespace hmc::capi;  // NOLINT(google-build-using-namespace)

Status checkInit(uint32_t worldSize, uint32_t rankId, const smem_shm_config_t& config) {
  if (worldSize == 0 || worldSize > pool::kMostRanks) {
    return error(Code::invalidArgument, "a world of {} ranks cannot be: 1 to {}", worldSize,
                 pool::kMostRanks);
  }
  if (rankId >= worldSize) {
    return error(Code::invalidArgument, "rankId {} cannot be: the world has {} ranks, from 0",
                 rankId, worldSize);
  }
  return checkTimeouts({{"shmInitTimeout", config.shmInitTimeout},
                        {"shmCreateTimeout", config.shmCreateTimeout},
                        {"controlOperationTimeout", config.controlOperationTimeout}});
}

Status checkCreate(const Session& session, uint32_t rankSize, uint32_t rankId, uint64_t size) {
  if (rankSize == 0 || rankSize > session.world->size()) {
    return error(Code::invalidArgument, "rankSize {} cannot be: the world has {} ranks", rankSize,
                 session.world->size());
  }
  if (rankId >= rankSize) {
    return error(Code::invalidArgument, "rankId {} cannot be: rankSize is {}", rankId, rankSize);
  }
  constexpr uint64_t kMost = uint64_t{1} << 46;
  if (size == 0 || size > kMost)
    return error(Code::invalidArgument, "symmetricSize {} cannot be: 1 to {}", size, kMost);
  return Status();
}

struct Made {
  void* handle;
  char* base;
};

Result<Made> make(Library& library, const std::shared_ptr<const Session>& session,
                  const pool::SymmetricOptions& options) {
  HMC_ASSIGN(auto made, pool::Symmetric::create(*session->world, options, session->createTimeout));
  char* const base = made->base();
  auto object = std::make_unique<SharedMemory>();
  object->session = session;
  object->memory = std::move(made);
  void* const handle = library.objects.add(std::move(object));
  if (handle) return Made{handle, base};
  return error(Code::exhausted, "this process has {} objects, which are the most",
               HandleTable<SharedMemory>::kMost);
}

}  // namespace

extern "C" {

int32_t smem_shm_config_init(smem_shm_config_t* config) {
  if (!config) return nullArgument("config");
  *config = {kDefaultSeconds, kDefaultSeconds, kDefaultSeconds, true, 0};
  return SMEM_OK;
}

int32_t smem_shm_init(const char* configStoreIpPort, uint32_t worldSize, uint32_t rankId,
                      uint16_t deviceId, smem_shm_config_t* config) {
  return call([&]() -> int32_t {
    Library& library = Library::get();
    if (!config) return nullArgument("config");
    const Deadline deadline = std::chrono::seconds(config->shmInitTimeout);
    const ChangeTurn turn(library, deadline);
    if (!turn.mine()) return changingElsewhere();
    if (!library.initialised.load()) return notInitialised("smem_init");
    if (library.shm()) return SMEM_OK;
    if (!configStoreIpPort) return nullArgument("configStoreIpPort");
    if (Status bad = checkInit(worldSize, rankId, *config); !bad.ok()) return fail(bad);
    const auto device = pool::deviceNumber(deviceId);
    if (!device.ok()) return fail(device.status());
    pool::WorldOptions options;
    options.url = configStoreIpPort;
    options.size = worldSize;
    options.rank = rankId;
    options.protection = library.tls.protection();
    if (config->startConfigStore && rankId == 0) options.serve = pool::Serve::yes;
    auto world = pool::World::enter(library.stores, options, deadline);
    if (!world.ok()) return failToEnter(library, options, world.status());
    auto session = std::make_shared<Session>();
    session->world = *std::move(world);
    session->device = *device;
    session->createTimeout = std::chrono::seconds(config->shmCreateTimeout);
    session->operationTimeout = std::chrono::seconds(config->controlOperationTimeout);
    session->listen = session->world->listen();
    library.setShm(std::move(session));
    return SMEM_OK;
  });
}

void smem_shm_uninit(uint32_t /*flags*/) {
  closing([](Library& library) { library.closeShm(); });
}

uint32_t smem_shm_query_support_data_operation(void) {
  return SMEMS_DATA_OP_MTE;
}

smem_shm_t smem_shm_create(uint32_t id, uint32_t rankSize, uint32_t rankId, uint64_t symmetricSize,
                           smem_shm_data_op_type /*dataOpType*/, uint32_t /*flags*/, void** gva) {
  void* handle = nullptr;
  call([&]() -> int32_t {
    Library& library = Library::get();
    const auto session = library.shm();
    if (!session) return notInitialised("smem_shm_init");
    if (!gva) return nullArgument("gva");
    if (Status bad = checkCreate(*session, rankSize, rankId, symmetricSize); !bad.ok())
      return fail(bad);
    IdHold hold(library.objectIds, id);
    if (!hold.held()) {
      return fail(SMEM_DUPLICATED_OBJECT, fmt::format("this process has an object {} already", id));
    }
    auto made =
        make(library, session, {id, rankId, rankSize, roundUp(symmetricSize), session->device});
    if (!made.ok()) return fail(made.status());
    hold.pass();
    if (library.shm() != session) {
      (void)library.destroyObject(made->handle);
      return notInitialised("smem_shm_init");
    }
    handle = made->handle;
    *gva = made->base;
    return SMEM_OK;
  });
  return handle;
}

int32_t smem_shm_destroy(smem_shm_t handle, uint32_t /*flags*/) {
  return call([&]() -> int32_t {
    Library& library = Library::get();
    if (!library.shm()) return notInitialised("smem_shm_init");
    return finish(library.destroyObject(handle));
  });
}

int32_t smem_shm_set_extra_context(smem_shm_t handle, const void* context, uint32_t size) {
  return withObject(handle, [&](SharedMemory& object) -> int32_t {
    if (!context) return nullArgument("context");
    return finish(object.memory->setContext(context, size));
  });
}

uint32_t smem_shm_get_global_rank(smem_shm_t handle) {
  uint32_t rank = UINT32_MAX;
  withObject(handle, [&](SharedMemory& object) -> int32_t {
    rank = object.memory->options().rank;
    return SMEM_OK;
  });
  return rank;
}

uint32_t smem_shm_get_global_rank_size(smem_shm_t handle) {
  uint32_t ranks = UINT32_MAX;
  withObject(handle, [&](SharedMemory& object) -> int32_t {
    ranks = object.memory->options().ranks;
    return SMEM_OK;
  });
  return ranks;
}

int32_t smem_shm_control_barrier(smem_shm_t handle) {
  return withObject(handle, [](SharedMemory& object) {
    return finish(object.memory->barrier(object.session->operationTimeout));
  });
}

int32_t smem_shm_control_allgather(smem_shm_t handle, const char* sendBuf, uint32_t sendSize,
                                   char* recvBuf, uint32_t recvSize) {
  return withObject(handle, [&](SharedMemory& object) -> int32_t {
    if (!sendBuf) return nullArgument("sendBuf");
    if (!recvBuf) return nullArgument("recvBuf");
    const uint64_t all = uint64_t{sendSize} * object.memory->options().ranks;
    if (recvSize != all) {
      return fail(SMEM_INVALID_PARAM, fmt::format("recvSize is {}, not {} x {} = {}", recvSize,
                                                  sendSize, object.memory->options().ranks, all));
    }
    return finish(
        object.memory->allgather(sendBuf, sendSize, recvBuf, object.session->operationTimeout));
  });
}

int32_t smem_shm_topology_can_reach(smem_shm_t handle, uint32_t remoteRank, uint32_t* reachInfo) {
  return withObject(handle, [&](SharedMemory& object) -> int32_t {
    if (!reachInfo) return nullArgument("reachInfo");
    if (remoteRank >= object.memory->options().ranks)
      return rankTooHigh(remoteRank, object.memory->options().ranks);
    const auto mapped = object.memory->mapped(remoteRank);
    if (!mapped.ok()) return fail(mapped.status());
    *reachInfo = *mapped ? SMEMS_DATA_OP_MTE : SMEMS_DATA_OP_ROCE;
    return SMEM_OK;
  });
}

}  // extern "C"
