#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <string>

#include "base/dynamic_library.h"

// These two are macros as well.
#undef ibv_query_port
#undef ibv_reg_mr

namespace hmc::verbs {

#define HMC_VERBS_FUNCTIONS(X) \
  X(ibv_get_device_list)       \
  X(ibv_free_device_list)      \
  X(ibv_get_device_name)       \
  X(ibv_open_device)           \
  X(ibv_close_device)          \
  X(ibv_query_device)          \
  X(ibv_query_port)            \
  X(ibv_query_gid)             \
  X(ibv_alloc_pd)              \
  X(ibv_dealloc_pd)            \
  X(ibv_reg_mr)                \
  X(ibv_dereg_mr)              \
  X(ibv_create_comp_channel)   \
  X(ibv_destroy_comp_channel)  \
  X(ibv_create_cq)             \
  X(ibv_destroy_cq)            \
  X(ibv_get_cq_event)          \
  X(ibv_ack_cq_events)         \
  X(ibv_create_qp)             \
  X(ibv_modify_qp)             \
  X(ibv_destroy_qp)            \
  X(ibv_get_async_event)       \
  X(ibv_ack_async_event)       \
  X(ibv_event_type_str)        \
  X(ibv_wc_status_str)         \
  X(ibv_fork_init)

// The functions of libibverbs that we call, all or none but for the last two. Posting, polling and
// arming are inline functions of its header that go through the device's own table. Of an
// ibv_port_attr, ibv_query_port() fills what old versions know: zero the rest before.
struct Library {
  // The library of this system, or the reason why it cannot be used.
  static Result<std::shared_ptr<const Library>> load();

#define HMC_VERBS_POINTER(name) decltype(&::name) name = nullptr;
  HMC_VERBS_FUNCTIONS(HMC_VERBS_POINTER)
  HMC_VERBS_POINTER(ibv_is_fork_initialized)  // null before rdma-core 35
  HMC_VERBS_POINTER(ibv_reg_dmabuf_mr)        // null before rdma-core 34: no dma-buf
#undef HMC_VERBS_POINTER

  DynamicLibrary handle;
  explicit Library(DynamicLibrary loaded) : handle(std::move(loaded)) {}
};

// Owns an object of libibverbs.
template <class T>
using Handle = std::unique_ptr<T, int (*)(T*)>;

}  // namespace hmc::verbs
