#include "store/store.h"

#include "base/error.h"
#include "base/tls_options.h"
#include "store/client.h"
#include "store/etcd/etcd.h"

namespace hmc::store {

Result<std::shared_ptr<Store>> openStore(const std::string& url, const StoreOptions& options,
                                         Deadline deadline) {
  if (url.starts_with("tcp://") || url.starts_with("unix://")) {
    HMC_ASSIGN(auto client, Client::open(url, options, deadline));
    return std::shared_ptr<Store>(std::move(client));
  }
  if (url.starts_with("etcd://") || url.starts_with("etcds://")) {
    HMC_ASSIGN(const TlsOptions tls, withEnvironment(options.tls));
    if (isRequired(tls) && url.starts_with("etcd://")) {
      return error(Code::permissionDenied,
                   "the store {} does not encrypt, and this side demands TLS: use etcds://", url);
    }
    return etcd::open(url, options, deadline);
  }
  return error(Code::invalidArgument,
               "the store {} cannot be opened: its address must begin with tcp://, unix://, "
               "etcd:// or etcds://",
               url);
}

}  // namespace hmc::store
