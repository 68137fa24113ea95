#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <string>
#include <vector>

#include "hmc/result.h"

namespace hmc::ucx {

inline constexpr const char* kLibraryName = "libucp.so.0";

// Where to search for a libucp, in this order.
struct Search {
  std::string root;                   // UCX_ROOT; its lib/ is meant
  std::vector<std::string> system;    // folders of libraries
  std::vector<std::string> prefixes;  // of Python installations: PREFIX/lib/python3*/...

  // From this process's environment.
  static Search ofThisProcess();
};

// The path of the first one that exists; it is not loaded. `unsupported` names the places that were
// searched.
Result<std::string> findLibrary(const Search& search);

// What a folder holds, sorted.
std::vector<std::string> namesIn(const std::string& folder);

// The one that this process has loaded already; empty when it has none.
std::string loadedLibrary();

#define HMC_UCX_FUNCTIONS(X)        \
  X(ucp_get_version)                \
  X(ucp_get_version_string)         \
  X(ucp_config_read)                \
  X(ucp_config_modify)              \
  X(ucp_config_release)             \
  X(ucp_init_version)               \
  X(ucp_cleanup)                    \
  X(ucp_context_print_info)         \
  X(ucp_dt_create_generic)          \
  X(ucp_dt_destroy)                 \
  X(ucp_worker_create)              \
  X(ucp_worker_destroy)             \
  X(ucp_worker_query)               \
  X(ucp_worker_release_address)     \
  X(ucp_worker_get_efd)             \
  X(ucp_worker_arm)                 \
  X(ucp_worker_progress)            \
  X(ucp_worker_set_am_recv_handler) \
  X(ucp_ep_create)                  \
  X(ucp_ep_close_nbx)               \
  X(ucp_ep_flush_nbx)               \
  X(ucp_ep_query)                   \
  X(ucp_ep_print_info)              \
  X(ucp_ep_rkey_unpack)             \
  X(ucp_rkey_destroy)               \
  X(ucp_mem_map)                    \
  X(ucp_mem_unmap)                  \
  X(ucp_rkey_pack)                  \
  X(ucp_rkey_buffer_release)        \
  X(ucp_put_nbx)                    \
  X(ucp_get_nbx)                    \
  X(ucp_am_send_nbx)                \
  X(ucp_request_free)               \
  X(ucs_status_string)

// The functions of one libucp, all or none, with the types of the header. UCX starts threads, so it
// is never unloaded.
struct Api {
#define HMC_UCX_POINTER(name) decltype(&::name) name = nullptr;
  HMC_UCX_FUNCTIONS(HMC_UCX_POINTER)
#undef HMC_UCX_POINTER
  std::string path;
  std::string version;  // "1.13.1"

  // Loads it, with the libraries beside it that belong to it. The process's signal handlers stay
  // as they were: UCX's own would turn a crash of the user's into a report about UCX.
  static Result<std::shared_ptr<const Api>> load(const std::string& path);

  std::string text(ucs_status_t status) const {
    return ucs_status_string(status);
  }
};

}  // namespace hmc::ucx
