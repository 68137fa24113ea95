#include "transport/verbs/library.h"

#include "base/error.h"

namespace hmc::verbs {

namespace {

constexpr const char* kFile = "libibverbs.so.1";

template <class Function>
Status bind(const DynamicLibrary& library, const char* name, Function*& slot) {
  HMC_ASSIGN(slot, library.symbol<Function>(name));
  return Status();
}

}  // namespace

Result<std::shared_ptr<const Library>> Library::load() {
  auto opened = DynamicLibrary::open(kFile);
  if (!opened.ok()) {
    return error(Code::unsupported, "{}; install libibverbs1 and ibverbs-providers",
                 opened.status().message());
  }
  // It never frees its list of devices, so it must not be unloaded.
  opened->stay();
  auto library = std::make_shared<Library>(*std::move(opened));
  const DynamicLibrary& from = library->handle;
  HMC_TRY(bind(from, "ibv_get_device_list", library->getDeviceList));
  HMC_TRY(bind(from, "ibv_free_device_list", library->freeDeviceList));
  HMC_TRY(bind(from, "ibv_get_device_name", library->getDeviceName));
  HMC_TRY(bind(from, "ibv_open_device", library->openDevice));
  HMC_TRY(bind(from, "ibv_close_device", library->closeDevice));
  HMC_TRY(bind(from, "ibv_query_device", library->queryDevice));
  HMC_TRY(bind(from, "ibv_query_port", library->queryPort));
  HMC_TRY(bind(from, "ibv_query_gid", library->queryGid));
  HMC_TRY(bind(from, "ibv_alloc_pd", library->allocPd));
  HMC_TRY(bind(from, "ibv_dealloc_pd", library->deallocPd));
  HMC_TRY(bind(from, "ibv_reg_mr", library->regMr));
  HMC_TRY(bind(from, "ibv_dereg_mr", library->deregMr));
  HMC_TRY(bind(from, "ibv_create_comp_channel", library->createCompChannel));
  HMC_TRY(bind(from, "ibv_destroy_comp_channel", library->destroyCompChannel));
  HMC_TRY(bind(from, "ibv_create_cq", library->createCq));
  HMC_TRY(bind(from, "ibv_destroy_cq", library->destroyCq));
  HMC_TRY(bind(from, "ibv_get_cq_event", library->getCqEvent));
  HMC_TRY(bind(from, "ibv_ack_cq_events", library->ackCqEvents));
  HMC_TRY(bind(from, "ibv_create_qp", library->createQp));
  HMC_TRY(bind(from, "ibv_modify_qp", library->modifyQp));
  HMC_TRY(bind(from, "ibv_destroy_qp", library->destroyQp));
  HMC_TRY(bind(from, "ibv_get_async_event", library->getAsyncEvent));
  HMC_TRY(bind(from, "ibv_ack_async_event", library->ackAsyncEvent));
  HMC_TRY(bind(from, "ibv_event_type_str", library->eventTypeStr));
  HMC_TRY(bind(from, "ibv_wc_status_str", library->wcStatusStr));
  HMC_TRY(bind(from, "ibv_fork_init", library->forkInit));
  (void)bind(from, "ibv_reg_dmabuf_mr", library->regDmabufMr);
  (void)bind(from, "ibv_is_fork_initialized", library->isForkInitialized);
  // On kernels before 5.12 a child of fork() would take the pages that the NIC writes to. This
  // fails where the process has used verbs already, and so has decided itself. It is left out where
  // the kernel makes it unnecessary: it hides whole pages from children, and what else is on them.
  if (!library->isForkInitialized || library->isForkInitialized() != IBV_FORK_UNNEEDED)
    library->forkInit();
  return std::shared_ptr<const Library>(std::move(library));
}

}  // namespace hmc::verbs
