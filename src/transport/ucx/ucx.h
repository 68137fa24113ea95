#pragma once

#include <memory>
#include <string>

#include "hmc/result.h"
#include "transport/transport.h"

// Put and get through UCX, which is loaded at run time and only when it is asked for.
//
//   ucx.cc           the Transport: loads UCX when the first memory or link is asked for
//   library.*        which libucp that is, found without running it
//   api.*            its functions
//   worker.*         a context, a worker and their endpoints, owned
//   link.*           the Link: ties the following two together
//   origin.*         the worker over which we ask, and the thread that calls progress() on it
//   outgoing.*       one link's share of it: the operations under way to one peer
//   service.*        the thread that serves what peers ask of us, and speaks to their service
//   registration.*   memory of ours and of peers
//   lanes.*          which of UCX's transports an endpoint uses, in words
//   address.*        how addresses and keys look as bytes
//
// docs/decisions/005-ucx-workers.md says why there are three kinds of workers.
namespace hmc::ucx {

struct UcxOptions {
  std::string library;  // the libucp to use; empty: look for one
};

// `unsupported` with the reason where there is no libucp. Loads nothing.
Result<std::unique_ptr<Transport>> create(const UcxOptions& options = {});

}  // namespace hmc::ucx
