#pragma once

#include <pybind11/pybind11.h>

namespace hmc::python {

// Calls a Python function with one argument or two. A thread whose interpreter ends meanwhile stays
// in here, as in takeGil(): see there.
pybind11::object callPython(pybind11::handle function, pybind11::handle first,
                            pybind11::handle second = {});

}  // namespace hmc::python
