#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>

#include "hmc/result.h"
#include "hmc/status.h"

namespace hmc {

Status formatError(Code code, fmt::string_view format, fmt::format_args args);

// error(Code::outOfRange, "put of {} bytes at remote offset {} ...", n, offset)
template <class... Args>
Status error(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return formatError(code, format, fmt::make_format_args(args...));
}

// The sentence of an errno: error text and number ("Connection refused (111)").
std::string errnoText(int errnum);

// A failed system call, with errno read at once: errnoStatus("bind to 127.0.0.1:80").
// EACCES and EPERM become permissionDenied, EADDRINUSE alreadyExists, ENOMEM, EMFILE and their kin
// exhausted, ECONNREFUSED, ECONNRESET and EPIPE disconnected, the rest failed.
Status errnoStatus(const std::string& what);
Status errnoStatus(const std::string& what, int errnum);

// What lastError() and lastStatus() answer on this thread from now on. Only the facades in api/
// call it.
void setLastStatus(Status status);

#define HMC_CONCAT_INNER(a, b) a##b
#define HMC_CONCAT(a, b) HMC_CONCAT_INNER(a, b)

// Leaves the function with the Status if it is not ok.
#define HMC_TRY(expression)                                                        \
  do {                                                                             \
    if (::hmc::Status hmcStatus = (expression); !hmcStatus.ok()) return hmcStatus; \
  } while (false)

// HMC_ASSIGN(auto fd, openFile(path)): the value of a Result, or leaves the function with its
// Status.
#define HMC_ASSIGN(declaration, expression) \
  HMC_ASSIGN_INNER(declaration, expression, HMC_CONCAT(hmcResult, __LINE__))
#define HMC_ASSIGN_INNER(declaration, expression, result) \
  auto result = (expression);                             \
  if (!result.ok()) return result.status();               \
  declaration = *std::move(result)

}  // namespace hmc
