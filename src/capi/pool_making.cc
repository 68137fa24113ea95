#include "capi/pool_making.h"

#include "capi/call.h"

namespace hmc::capi {

namespace {

Result<void*> make(Library& library, uint32_t id, const std::shared_ptr<const Session>& session,
                   const PoolSizes& sizes) {
  HMC_ASSIGN(auto made, BigMemory::create(id, session, sizes));
  void* const handle = library.pools.add(std::move(made));
  if (handle) return handle;
  return error(Code::exhausted, "this process has {} pools, which are the most",
               HandleTable<BigMemory>::kMost);
}

int32_t check(const Library& library, const Session* session) {
  if (!library.initialised.load()) return notInitialised("smem_init");
  if (!session) return notInitialised("smem_bm_init");
  if (session->world->rank()) return SMEM_OK;
  return fail(SMEM_NOT_STARTED, "this process serves the store only (startConfigStoreOnly)");
}

Status roundUp(PoolSizes& sizes) {
  constexpr uint64_t kMost = uint64_t{1} << 46;
  for (size_t i = 0; i < sizes.local.size(); ++i) {
    if (sizes.local[i] > kMost || sizes.most[i] > kMost) {
      return error(Code::invalidArgument, "a slot of {} bytes cannot be: {} are the most",
                   std::max(sizes.local[i], sizes.most[i]), kMost);
    }
    sizes.local[i] = capi::roundUp(sizes.local[i]);
    sizes.most[i] = capi::roundUp(sizes.most[i]);
    if (sizes.most[i] != 0 && sizes.local[i] > sizes.most[i]) {
      return error(Code::invalidArgument, "a slot of {} bytes is more than the most, {}",
                   sizes.local[i], sizes.most[i]);
    }
  }
  if (sizes.local[0] + sizes.local[1] + sizes.most[0] + sizes.most[1] == 0)
    return error(Code::invalidArgument, "both sizes are 0: a pool has host or device slots");
  return Status();
}

}  // namespace

int32_t rankTooHigh(uint32_t rank, uint32_t ranks) {
  return fail(SMEM_INVALID_PARAM,
              fmt::format("rank {} cannot be: there are {}, from 0", rank, ranks));
}

void* makePool(uint32_t id, PoolSizes sizes) {
  void* handle = nullptr;
  call([&]() -> int32_t {
    Library& library = Library::get();
    const auto session = library.bm();
    if (const int32_t bad = check(library, session.get()); bad != SMEM_OK) return bad;
    if (Status bad = roundUp(sizes); !bad.ok()) return fail(bad);
    IdHold hold(library.poolIds, id);
    if (!hold.held()) {
      return fail(SMEM_DUPLICATED_OBJECT, fmt::format("this process has a pool {} already", id));
    }
    auto made = make(library, id, session, sizes);
    if (!made.ok()) return fail(made.status());
    hold.pass();
    if (library.bm() != session) {
      library.destroyPool(*made);
      return notInitialised("smem_bm_init");
    }
    handle = *made;
    return SMEM_OK;
  });
  return handle;
}

}  // namespace hmc::capi
