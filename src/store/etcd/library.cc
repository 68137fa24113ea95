#include "store/etcd/library.h"

#include <mutex>

#include "base/error.h"

namespace hmc::store::etcd {

namespace {

constexpr const char* kFile = "libcurl.so.4";

template <class Function>
Status bind(const DynamicLibrary& library, const char* name, Function*& slot) {
  HMC_ASSIGN(slot, library.symbol<Function>(name));
  return Status();
}

Status bindAll(Library& library) {
#define HMC_CURL_BIND(name) HMC_TRY(bind(library.handle, #name, library.name));
  HMC_CURL_FUNCTIONS(HMC_CURL_BIND)
#undef HMC_CURL_BIND
  return Status();
}

}  // namespace

Result<std::shared_ptr<const Library>> Library::load() {
  auto opened = DynamicLibrary::open(kFile);
  if (!opened.ok()) {
    return error(Code::unsupported, "etcd needs libcurl: {}; install libcurl4",
                 opened.status().message());
  }
  // It keeps state of the process, and so do the libraries that it brings.
  opened->stay();
  auto library = std::make_shared<Library>(*std::move(opened));
  if (const Status bound = bindAll(*library); !bound.ok()) {
    return error(Code::unsupported, "etcd needs libcurl 7.68 or newer: {}", bound.message());
  }
  // Not safe from two threads at once in old versions.
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (const CURLcode problem = library->curl_global_init(CURL_GLOBAL_DEFAULT)) {
    return error(Code::unsupported, "libcurl cannot be used: {}",
                 library->curl_easy_strerror(problem));
  }
  return std::shared_ptr<const Library>(std::move(library));
}

}  // namespace hmc::store::etcd
