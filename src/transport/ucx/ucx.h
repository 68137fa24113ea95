#pragma once

#include <memory>
#include <string>

#include "hmc/result.h"
#include "transport/transport.h"

// Put and get through UCX, which is loaded at run time and only when it is asked for.
//
//   ucx.cc           the Transport: loads UCX when the first memory or link is asked for
//   library.*        which libucp that is, found without running it, and its functions
//   worker.*         a context, a worker and its endpoints, owned; what waits for an answer
//   link.*           the Link: sends our operations to its peer
//   requests.*       those that are under way, the peer's memory, and UCX's own put, get and flush
//   path.*           the worker and the endpoint that they go over; its other end, which serves
//   progress.*       the thread in progress() drives all paths of ours
//   service.*        the thread that drives the other ends, and its messages to the peers' services
//   lanes.*          which of UCX's transports an endpoint uses
//   wire.*           formats of bytes: addresses, keys, requests, replies
//
// docs/decisions/005-ucx-workers.md says why there are three kinds of workers.
namespace hmc::ucx {

struct UcxOptions {
  std::string library;  // the libucp to use; empty: search for one
};

// `unsupported` with the reason where there is no libucp. Loads nothing.
Result<std::unique_ptr<Transport>> create(const UcxOptions& options = {});

}  // namespace hmc::ucx
