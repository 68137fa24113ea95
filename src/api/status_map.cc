#include "api/status_map.h"

#include "base/error.h"

namespace hmc {

namespace {

status_t valueOf(Code code) {
  switch (code) {
    case Code::ok:
      return status_t::SUCCESS;
    case Code::unsupported:
      return status_t::UNSUPPORT;
    case Code::notFound:
      return status_t::NOT_FOUND;
    case Code::deadlineExceeded:
      return status_t::TIMEOUT;
    default:
      return status_t::ERROR;
  }
}

}  // namespace

status_t report(const Status& status) {
  return report(status, valueOf(status.code()));
}

status_t report(const Status& status, status_t as) {
  if (status.ok()) return status_t::SUCCESS;
  setLastStatus(status);
  return as;
}

}  // namespace hmc
