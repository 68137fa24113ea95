#pragma once

#include <pybind11/pybind11.h>

namespace hmc::python {

// Calls a Python function with one argument or two. If the interpreter ends meanwhile, the thread
// stays in here, for the reason that takeGil() gives.
pybind11::object callPython(pybind11::handle function, pybind11::handle first,
                            pybind11::handle second = {});

}  // namespace hmc::python
