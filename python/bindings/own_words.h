#pragma once

#include <pybind11/pybind11.h>

namespace hmc::python {

// Arguments that no overload takes get a sentence of ours (hmc/argument_errors.py) instead of
// pybind11's list of signatures. For everything that the module has by now.
void useOwnWords(const pybind11::module_& module);

}  // namespace hmc::python
