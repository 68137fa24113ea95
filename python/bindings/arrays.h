#pragma once

#include <pybind11/pybind11.h>

namespace hmc::python {

void bindArrays(pybind11::module_& module);

}  // namespace hmc::python
