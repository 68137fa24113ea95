#include "capi/bm_start.h"

#include "capi/call.h"

namespace hmc::capi {

namespace {

Status check(uint32_t worldSize, const BmSettings& settings) {
  if (worldSize == 0 || worldSize > pool::kMostRanks) {
    return error(Code::invalidArgument, "a world of {} ranks cannot be: 1 to {}", worldSize,
                 pool::kMostRanks);
  }
  HMC_TRY(checkTimeouts({{"initTimeout", settings.initTimeout},
                         {"createTimeout", settings.createTimeout},
                         {"controlOperationTimeout", settings.operationTimeout}}));
  if (!settings.unified) return error(Code::invalidArgument, "unifiedAddressSpace must be true");
  if (!settings.autoRank && !settings.serveOnly && settings.rank >= worldSize) {
    return error(Code::invalidArgument,
                 "rankId {} cannot be: the world has {} ranks, from 0; set rankId or autoRanking",
                 settings.rank, worldSize);
  }
  return Status();
}

pool::Serve whoServes(const BmSettings& settings) {
  if (settings.serveOnly) return pool::Serve::yes;
  if (!settings.serve) return pool::Serve::no;
  if (settings.autoRank) return pool::Serve::ifFree;
  return settings.rank == 0 ? pool::Serve::yes : pool::Serve::no;
}

}  // namespace

int32_t startBm(const char* url, uint32_t worldSize, uint16_t deviceId,
                const BmSettings& settings) {
  Library& library = Library::get();
  const Deadline deadline = std::chrono::seconds(settings.initTimeout);
  const ChangeTurn turn(library, deadline);
  if (!turn.mine()) return changingElsewhere();
  if (!library.initialised.load()) return notInitialised("smem_init");
  if (library.bm()) return SMEM_OK;
  if (!url) return nullArgument("storeURL");
  if (Status bad = check(worldSize, settings); !bad.ok()) return fail(bad);
  const auto device = pool::deviceNumber(deviceId);
  if (!device.ok()) return fail(device.status());

  pool::WorldOptions options;
  options.url = url;
  options.size = worldSize;
  if (!settings.autoRank && !settings.serveOnly) options.rank = settings.rank;
  options.serve = whoServes(settings);
  options.serveOnly = settings.serveOnly;
  options.protection = settings.protection;
  auto world = pool::World::enter(library.stores, options, deadline);
  if (!world.ok()) return failToEnter(library, options, world.status());

  auto session = std::make_shared<Session>();
  session->world = *std::move(world);
  session->device = *device;
  session->createTimeout = std::chrono::seconds(settings.createTimeout);
  session->operationTimeout = std::chrono::seconds(settings.operationTimeout);
  session->listen = settings.listen.empty() ? session->world->listen() : settings.listen;
  library.setBm(std::move(session));
  return SMEM_OK;
}

}  // namespace hmc::capi
