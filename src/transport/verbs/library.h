#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <string>

#include "base/dynamic_library.h"

namespace hmc::verbs {

// The functions of libibverbs that we call. Posting, polling and arming are inline functions of its
// header that go through the device's own table: they need no symbol.
struct Library {
  // The library of this system, or the reason why it cannot be used.
  static Result<std::shared_ptr<const Library>> load();

  decltype(&::ibv_get_device_list) getDeviceList = nullptr;
  decltype(&::ibv_free_device_list) freeDeviceList = nullptr;
  decltype(&::ibv_get_device_name) getDeviceName = nullptr;
  decltype(&::ibv_open_device) openDevice = nullptr;
  decltype(&::ibv_close_device) closeDevice = nullptr;
  decltype(&::ibv_query_device) queryDevice = nullptr;
  // Fills an ibv_port_attr up to its link_layer; the rest must be zero before.
  decltype(&::ibv_query_port) queryPort = nullptr;
  decltype(&::ibv_query_gid) queryGid = nullptr;
  decltype(&::ibv_alloc_pd) allocPd = nullptr;
  decltype(&::ibv_dealloc_pd) deallocPd = nullptr;
  decltype(&::ibv_reg_mr) regMr = nullptr;
  decltype(&::ibv_dereg_mr) deregMr = nullptr;
  decltype(&::ibv_create_comp_channel) createCompChannel = nullptr;
  decltype(&::ibv_destroy_comp_channel) destroyCompChannel = nullptr;
  decltype(&::ibv_create_cq) createCq = nullptr;
  decltype(&::ibv_destroy_cq) destroyCq = nullptr;
  decltype(&::ibv_get_cq_event) getCqEvent = nullptr;
  decltype(&::ibv_ack_cq_events) ackCqEvents = nullptr;
  decltype(&::ibv_create_qp) createQp = nullptr;
  decltype(&::ibv_modify_qp) modifyQp = nullptr;
  decltype(&::ibv_destroy_qp) destroyQp = nullptr;
  decltype(&::ibv_get_async_event) getAsyncEvent = nullptr;
  decltype(&::ibv_ack_async_event) ackAsyncEvent = nullptr;
  decltype(&::ibv_event_type_str) eventTypeStr = nullptr;
  decltype(&::ibv_wc_status_str) wcStatusStr = nullptr;
  decltype(&::ibv_fork_init) forkInit = nullptr;
  // Null before rdma-core 35.
  decltype(&::ibv_is_fork_initialized) isForkInitialized = nullptr;
  // Null before rdma-core 34: no device memory by dma-buf.
  decltype(&::ibv_reg_dmabuf_mr) regDmabufMr = nullptr;

  const std::string& path() const { return handle.path(); }

  DynamicLibrary handle;
  explicit Library(DynamicLibrary loaded) : handle(std::move(loaded)) {}
};

// Owns an object of libibverbs.
template <class T>
using Handle = std::unique_ptr<T, int (*)(T*)>;

}  // namespace hmc::verbs
