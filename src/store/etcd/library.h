#pragma once

#include <curl/curl.h>

#include <memory>

#include "base/dynamic_library.h"

// Their types are checked by macros, which would not let us have members of these names.
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

namespace hmc::store::etcd {

#define HMC_CURL_FUNCTIONS(X) \
  X(curl_global_init)         \
  X(curl_easy_init)           \
  X(curl_easy_cleanup)        \
  X(curl_easy_setopt)         \
  X(curl_easy_getinfo)        \
  X(curl_easy_strerror)       \
  X(curl_slist_append)        \
  X(curl_slist_free_all)      \
  X(curl_multi_init)          \
  X(curl_multi_cleanup)       \
  X(curl_multi_add_handle)    \
  X(curl_multi_remove_handle) \
  X(curl_multi_perform)       \
  X(curl_multi_poll)          \
  X(curl_multi_wakeup)        \
  X(curl_multi_info_read)

// The functions of libcurl that we call.
struct Library {
  // The library of this system, 7.68 or newer, or the reason why it cannot be used.
  static Result<std::shared_ptr<const Library>> load();

#define HMC_CURL_POINTER(name) decltype(&::name) name = nullptr;
  HMC_CURL_FUNCTIONS(HMC_CURL_POINTER)
#undef HMC_CURL_POINTER

  DynamicLibrary handle;
  explicit Library(DynamicLibrary loaded) : handle(std::move(loaded)) {}
};

}  // namespace hmc::store::etcd
