#pragma once

#include <pybind11/pybind11.h>

#include "hmc/result.h"
#include "hmc/status.h"

namespace hmc::python {

// Throws the exception of hmc/errors.py that stands for the status, with its sentence.
[[noreturn]] void raise(const Status& status);
[[noreturn]] void raise(Code code, const std::string& sentence);
// The same by the exception's own word for its kind.
[[noreturn]] void raise(const char* code, const std::string& sentence);

inline void check(const Status& status) {
  if (!status.ok()) raise(status);
}

template <class T>
T check(Result<T> result) {
  if (!result.ok()) raise(result.status());
  return std::move(result).value();
}

}  // namespace hmc::python
