#include "smem/host/smem_trans.h"

#include <span>
#include <vector>

#include "agent/agent.h"
#include "capi/call.h"
#include "capi/pool_making.h"

namespace {

using namespace hmc;        // NOLINT(google-build-using-namespace)
using namespace hmc::capi;  // NOLINT(google-build-using-namespace)
using agent::Direction;
using agent::TransferPiece;

constexpr uint32_t kNoDevice = UINT32_MAX;
constexpr uint32_t kMostOfBatch = 1U << 20;

Status check(const smem_trans_config_t& config) {
  if (config.role <= SMEM_TRANS_NONE || config.role >= SMEM_TRANS_BUTT) {
    return error(Code::invalidArgument,
                 "role {} cannot be: 1 (sender, Prefill), 2 (receiver, Decode) or 3 (both)",
                 static_cast<int>(config.role));
  }
  return checkTimeouts({{"initTimeout", config.initTimeout}});
}

Status checkCount(uint32_t count) {
  if (count > 0 && count <= kMostOfBatch) return Status();
  return error(Code::invalidArgument, "a batch of {} cannot be: 1 to {}", count, kMostOfBatch);
}

// Calls body(engine) for the engine of a handle.
template <class Body>
int32_t withEngine(void* handle, Body body) {
  return call([&]() -> int32_t {
    Library& library = Library::get();
    auto engine = library.engines.find(handle);
    if (engine) return body(*engine);
    if (!library.transInitialised.load()) return notInitialised("smem_trans_init");
    return fail(SMEM_INVALID_PARAM, fmt::format("there is no engine with the handle {}", handle));
  });
}

Result<void*> make(Library& library, const char* storeUrl, const char* uniqueId,
                   const smem_trans_config_t& config) {
  HMC_TRY(check(config));
  agent::AgentOptions options;
  options.store = storeUrl;
  options.serve = config.startConfigServer ? pool::Serve::yes : pool::Serve::no;
  options.id = uniqueId;
  options.timeout = std::chrono::seconds(config.initTimeout);
  options.protection = library.tls.protection();
  if (config.deviceId != kNoDevice) {
    HMC_ASSIGN(options.device, pool::deviceNumber(config.deviceId));
  }
  HMC_ASSIGN(auto engine, agent::Agent::create(library.stores, options));
  void* const handle = library.engines.add(std::move(engine));
  if (handle) return handle;
  return error(Code::exhausted, "this process has {} engines, which are the most",
               HandleTable<agent::Agent>::kMost);
}

// What all forms of a transfer say: a single one is a batch of one.
struct Transfers {
  void* const* local;
  const char* remoteId;
  const void* const* remote;
  const size_t* sizes;
  uint32_t count;
};

Result<std::vector<TransferPiece>> readTransfers(const Transfers& given) {
  if (!given.local) return error(Code::invalidArgument, "localAddrs is NULL");
  if (!given.remoteId) return error(Code::invalidArgument, "remoteUniqueId is NULL");
  if (!given.remote) return error(Code::invalidArgument, "remoteAddrs is NULL");
  if (!given.sizes) return error(Code::invalidArgument, "dataSizes is NULL");
  HMC_TRY(checkCount(given.count));
  std::vector<TransferPiece> pieces;
  pieces.reserve(given.count);
  for (uint32_t i = 0; i < given.count; ++i) {
    const auto remote = reinterpret_cast<uintptr_t>(given.remote[i]);
    if (!given.local[i] || remote == 0 || given.sizes[i] == 0) {
      return error(Code::invalidArgument,
                   "transfer {} has {} bytes between {} here and {:#x} there: all three are needed",
                   i, given.sizes[i], given.local[i], remote);
    }
    if (given.sizes[i] > UINT64_MAX - remote) {
      return error(Code::invalidArgument, "transfer {} has {} bytes at {:#x}: no memory ends there",
                   i, given.sizes[i], remote);
    }
    pieces.push_back({given.local[i], remote, given.sizes[i]});
  }
  return pieces;
}

int32_t transfer(void* handle, Direction direction, const Transfers& given) {
  return withEngine(handle, [&](agent::Agent& engine) -> int32_t {
    const auto pieces = readTransfers(given);
    if (!pieces.ok()) return fail(pieces.status());
    return finish(engine.transfer(direction, given.remoteId, *pieces));
  });
}

int32_t submit(void* handle, Direction direction, const Transfers& given, void* stream) {
  return withEngine(handle, [&](agent::Agent& engine) -> int32_t {
    const auto pieces = readTransfers(given);
    if (!pieces.ok()) return fail(pieces.status());
    return finish(engine.submit(direction, given.remoteId, *pieces, stream));
  });
}

// Local memory is only read when it is written to others.
void* asWritable(const void* data) {
  return const_cast<void*>(data);  // NOLINT
}
void* const* asWritableList(const void* const* data) {
  return const_cast<void* const*>(data);  // NOLINT
}

}  // namespace

extern "C" {

int32_t smem_trans_config_init(smem_trans_config_t* config) {
  if (!config) return nullArgument("config");
  *config = {SMEM_TRANS_SENDER, kDefaultSeconds, kNoDevice, 0, SMEMB_DATA_OP_SDMA, false};
  return SMEM_OK;
}

int32_t smem_trans_init(const smem_trans_config_t* config) {
  return call([&]() -> int32_t {
    if (!config) return nullArgument("config");
    if (Status bad = check(*config); !bad.ok()) return fail(bad);
    const int32_t started = smem_init(0);
    if (started == SMEM_OK) Library::get().transInitialised.store(true);
    return started;
  });
}

void smem_trans_uninit(uint32_t /*flags*/) {
  closing([](Library& library) { library.closeTrans(); });
}

smem_trans_t smem_trans_create(const char* storeUrl, const char* uniqueId,
                               const smem_trans_config_t* config) {
  void* handle = nullptr;
  call([&]() -> int32_t {
    Library& library = Library::get();
    if (!library.transInitialised.load()) return notInitialised("smem_trans_init");
    if (!storeUrl) return nullArgument("storeUrl");
    if (!uniqueId) return nullArgument("uniqueId");
    if (!config) return nullArgument("config");
    const auto made = make(library, storeUrl, uniqueId, *config);
    if (!made.ok()) return fail(made.status());
    // Another thread may have ended everything meanwhile, and did not see this one.
    if (!library.transInitialised.load()) {
      library.destroyEngine(*made);
      return notInitialised("smem_trans_init");
    }
    handle = *made;
    return SMEM_OK;
  });
  return handle;
}

void smem_trans_destroy(smem_trans_t handle, uint32_t /*flags*/) {
  call([&]() -> int32_t {
    Library::get().destroyEngine(handle);
    return SMEM_OK;
  });
}

void* smem_trans_malloc(smem_trans_t handle, size_t size) {
  void* address = nullptr;
  withEngine(handle, [&](agent::Agent& engine) -> int32_t {
    if (size == 0) return fail(SMEM_INVALID_PARAM, "the memory has 0 bytes");
    const auto made = engine.allocate(size);
    if (!made.ok()) return fail(made.status());
    address = *made;
    return SMEM_OK;
  });
  return address;
}

int32_t smem_trans_free(smem_trans_t handle, void* address) {
  return withEngine(handle, [&](agent::Agent& engine) { return finish(engine.release(address)); });
}

int32_t smem_trans_register_mem(smem_trans_t handle, void* address, size_t capacity,
                                uint32_t flags) {
  return smem_trans_batch_register_mem(handle, &address, &capacity, 1, flags);
}

int32_t smem_trans_batch_register_mem(smem_trans_t handle, void* addresses[], size_t capacities[],
                                      uint32_t count, uint32_t /*flags*/) {
  return withEngine(handle, [&](agent::Agent& engine) -> int32_t {
    if (!addresses) return nullArgument("addresses");
    if (!capacities) return nullArgument("capacities");
    if (Status bad = checkCount(count); !bad.ok()) return fail(bad);
    std::vector<agent::Memory> memory;
    memory.reserve(count);
    for (uint32_t i = 0; i < count; ++i) {
      if (!addresses[i] || capacities[i] == 0) {
        return fail(SMEM_INVALID_PARAM, fmt::format("memory {} is {} bytes at {}: both are needed",
                                                    i, capacities[i], addresses[i]));
      }
      memory.push_back({addresses[i], capacities[i]});
    }
    return finish(engine.registerMemory(memory));
  });
}

int32_t smem_trans_deregister_mem(smem_trans_t handle, void* address) {
  return withEngine(handle,
                    [&](agent::Agent& engine) { return finish(engine.deregister(address)); });
}

int32_t smem_trans_write(smem_trans_t handle, const void* localAddr, const char* remoteUniqueId,
                         void* remoteAddr, size_t dataSize, uint32_t /*flags*/) {
  void* const local = asWritable(localAddr);
  const void* const remote = remoteAddr;
  return transfer(handle, Direction::write, {&local, remoteUniqueId, &remote, &dataSize, 1});
}

int32_t smem_trans_read(smem_trans_t handle, void* localAddr, const char* remoteUniqueId,
                        const void* remoteAddr, size_t dataSize, uint32_t /*flags*/) {
  return transfer(handle, Direction::read, {&localAddr, remoteUniqueId, &remoteAddr, &dataSize, 1});
}

int32_t smem_trans_batch_write(smem_trans_t handle, const void* localAddrs[],
                               const char* remoteUniqueId, void* remoteAddrs[], size_t dataSizes[],
                               uint32_t batchSize, uint32_t /*flags*/) {
  return transfer(handle, Direction::write,
                  {asWritableList(localAddrs), remoteUniqueId, remoteAddrs, dataSizes, batchSize});
}

int32_t smem_trans_batch_read(smem_trans_t handle, void* localAddrs[], const char* remoteUniqueId,
                              const void* remoteAddrs[], size_t dataSizes[], uint32_t batchSize,
                              uint32_t /*flags*/) {
  return transfer(handle, Direction::read,
                  {localAddrs, remoteUniqueId, remoteAddrs, dataSizes, batchSize});
}

int32_t smem_trans_write_submit(smem_trans_t handle, const void* localAddr,
                                const char* remoteUniqueId, void* remoteAddr, size_t dataSize,
                                void* stream, uint32_t /*flags*/) {
  void* const local = asWritable(localAddr);
  const void* const remote = remoteAddr;
  return submit(handle, Direction::write, {&local, remoteUniqueId, &remote, &dataSize, 1}, stream);
}

int32_t smem_trans_read_submit(smem_trans_t handle, void* localAddr, const char* remoteUniqueId,
                               const void* remoteAddr, size_t dataSize, void* stream,
                               uint32_t /*flags*/) {
  return submit(handle, Direction::read, {&localAddr, remoteUniqueId, &remoteAddr, &dataSize, 1},
                stream);
}

int32_t smem_trans_batch_write_submit(smem_trans_t handle, const void* localAddrs[],
                                      const char* remoteUniqueId, void* remoteAddrs[],
                                      size_t dataSizes[], uint32_t batchSize, void* stream,
                                      uint32_t /*flags*/) {
  return submit(handle, Direction::write,
                {asWritableList(localAddrs), remoteUniqueId, remoteAddrs, dataSizes, batchSize},
                stream);
}

int32_t smem_trans_batch_read_submit(smem_trans_t handle, void* localAddrs[],
                                     const char* remoteUniqueId, const void* remoteAddrs[],
                                     size_t dataSizes[], uint32_t batchSize, void* stream,
                                     uint32_t /*flags*/) {
  return submit(handle, Direction::read,
                {localAddrs, remoteUniqueId, remoteAddrs, dataSizes, batchSize}, stream);
}

}  // extern "C"
