#include <pybind11/pybind11.h>

#include "arrays.h"
#include "documented.h"
#include "hmc/version.h"

PYBIND11_MODULE(_core, module) {
  module.doc() = "The C++ side of the hmc package. Import hmc instead.";
  module.attr("__version__") = hmc::kVersion;
  hmc::python::bindArrays(module);
  hmc::python::bindMemory(module);
  hmc::python::bindCommunicator(module);
  hmc::python::bindSession(module);
}
