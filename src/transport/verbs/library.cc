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
#define HMC_VERBS_BIND(name) HMC_TRY(bind(from, #name, library->name));
  HMC_VERBS_FUNCTIONS(HMC_VERBS_BIND)
#undef HMC_VERBS_BIND
  (void)bind(from, "ibv_reg_dmabuf_mr", library->ibv_reg_dmabuf_mr);
  (void)bind(from, "ibv_is_fork_initialized", library->ibv_is_fork_initialized);
  // On kernels before 5.12 a child of fork() would take the pages that the NIC writes to. This
  // fails where the process has used verbs already, and so has decided itself. It is left out where
  // the kernel makes it unnecessary: it hides whole pages from children, and what else is on them.
  if (!library->ibv_is_fork_initialized || library->ibv_is_fork_initialized() != IBV_FORK_UNNEEDED)
    library->ibv_fork_init();
  return std::shared_ptr<const Library>(std::move(library));
}

}  // namespace hmc::verbs
