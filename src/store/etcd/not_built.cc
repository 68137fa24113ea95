#include "base/error.h"
#include "store/etcd/etcd.h"

// In place of everything else in this folder where the build found no headers.
namespace hmc::store::etcd {

Result<std::shared_ptr<Store>> open(const std::string& url, const StoreOptions&, Deadline) {
  return error(Code::unsupported,
               "the store {} cannot be opened: this HMC was built without curl/curl.h or "
               "nlohmann/json.hpp: install libcurl4-openssl-dev and nlohmann-json3-dev and build "
               "again",
               url);
}

}  // namespace hmc::store::etcd
