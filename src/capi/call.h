#pragma once

#include <cstdint>
#include <new>

#include "base/error.h"
#include "capi/library.h"
#include "capi/outcome.h"
#include "smem/host/smem_codes.h"

namespace hmc::capi {

// A call of the C interface: no exception leaves it.
template <class Body>
int32_t call(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(SMEM_MALLOC_FAILED, "there is no memory left");
  } catch (const std::exception& problem) {
    return fail(SMEM_ERROR, problem.what());
  }
}

inline int32_t notInitialised(const char* what) {
  return fail(SMEM_NOT_INITIALIZED, fmt::format("call {}() first", what));
}

inline int32_t nullArgument(const char* name) {
  return fail(SMEM_INVALID_PARAM, fmt::format("{} is NULL", name));
}

// Init and uninit of two threads at a time.
inline int32_t changingElsewhere() {
  return fail(SMEM_TIMEOUT, "another thread is in an init or uninit function");
}

// The end of smem_bm_uninit() and its kin, which have no way to fail.
template <class Body>
void closing(Body body) {
  call([&]() -> int32_t {
    Library& library = Library::get();
    const ChangeTurn turn(library, Deadline::never());
    if (!turn.mine()) return changingElsewhere();
    body(library);
    return SMEM_OK;
  });
}

// Why World::enter() failed, and whether it was that we could not serve the store.
inline int32_t failToEnter(Library& library, const pool::WorldOptions& options, const Status& why) {
  const bool serving = options.serve == pool::Serve::yes && !library.stores.serves(options.url) &&
                       (why.code() == Code::failed || why.code() == Code::permissionDenied);
  return serving ? fail(SMEM_NEW_OBJECT_FAILED, why.message()) : fail(why);
}

// Calls body(pool) for the pool of a handle.
template <class Body>
int32_t withPool(void* handle, Body body) {
  return call([&]() -> int32_t {
    Library& library = Library::get();
    auto pool = library.pools.find(handle);
    if (pool) [[likely]]
      return body(*pool);
    if (!library.bm()) return notInitialised("smem_bm_init");
    return fail(SMEM_INVALID_PARAM, fmt::format("there is no pool with the handle {}", handle));
  });
}

// The same for one that must have been joined.
template <class Body>
int32_t withJoined(void* handle, Body body) {
  return withPool(handle, [&](BigMemory& pool) -> int32_t {
    if (!pool.joined()) {
      return fail(SMEM_NOT_STARTED,
                  fmt::format("pool {} was not joined: call smem_bm_join()", pool.id()));
    }
    return body(pool);
  });
}

// Calls body(object) for the object of a handle.
template <class Body>
int32_t withObject(void* handle, Body body) {
  return call([&]() -> int32_t {
    Library& library = Library::get();
    auto object = library.objects.find(handle);
    if (object) return body(*object);
    if (!library.shm()) return notInitialised("smem_shm_init");
    return fail(SMEM_INVALID_PARAM, fmt::format("there is no object with the handle {}", handle));
  });
}

// 0 seconds would be over before anything is done.
struct NamedTimeout {
  const char* name;
  uint32_t seconds;
};
inline Status checkTimeouts(std::initializer_list<NamedTimeout> timeouts) {
  for (const NamedTimeout& one : timeouts) {
    if (one.seconds == 0) {
      return error(Code::invalidArgument, "{} is 0: a timeout has 1 second at least", one.name);
    }
  }
  return Status();
}

}  // namespace hmc::capi
