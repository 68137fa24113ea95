#pragma once

#include <memory>
#include <string>

#include "hmc/deadline.h"
#include "hmc/result.h"
#include "store/store.h"

namespace hmc::store::etcd {

// A store in an etcd of 3.4 or newer, by its JSON gateway; see address.h for the URL. Loads libcurl
// when it is called first: processes that use no etcd never have it. A lease lasts whole seconds,
// rounded up, and no shorter than etcd's own least, which is 2 s as etcd comes. A value must fit
// into etcd's --max-request-bytes, 1.5 MiB as etcd comes.
Result<std::shared_ptr<Store>> open(const std::string& url, const StoreOptions& options,
                                    Deadline deadline);

}  // namespace hmc::store::etcd
