#include "bench/bare_ucp.h"

// In place of bare_ucp.cc where the build found no headers.
namespace hmc::bench {

namespace {

Status missing() {
  return Status(Code::unsupported,
                "this hmc was built without ucp/api/ucp.h: install libucx-dev and build again");
}

}  // namespace

Result<std::unique_ptr<BareUcpTarget>> BareUcpTarget::start(void*, size_t) {
  return missing();
}

Result<std::unique_ptr<BareUcp>> BareUcp::connect(const std::string&, const void*) {
  return missing();
}

}  // namespace hmc::bench
