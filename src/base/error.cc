#include "base/error.h"

#include <cerrno>
#include <system_error>

namespace hmc {

Status formatError(Code code, fmt::string_view format, fmt::format_args args) {
  return Status(code, fmt::vformat(format, args));
}

std::string errnoText(int errnum) {
  return fmt::format("{} ({})", std::generic_category().message(errnum), errnum);
}

namespace {
Code codeOf(int errnum) {
  switch (errnum) {
    case EACCES:
    case EPERM:
      return Code::permissionDenied;
    case EADDRINUSE:
    case EEXIST:
      return Code::alreadyExists;
    case ENOENT:
      return Code::notFound;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOSPC:
      return Code::exhausted;
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return Code::disconnected;
    case ETIMEDOUT:
      return Code::deadlineExceeded;
    default:
      return Code::failed;
  }
}
}  // namespace

Status errnoStatus(const std::string& what, int errnum) {
  return Status(codeOf(errnum), what + ": " + errnoText(errnum));
}

Status errnoStatus(const std::string& what) {
  return errnoStatus(what, errno);
}

}  // namespace hmc
