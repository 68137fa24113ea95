#include <pybind11/pybind11.h>

#include "documented.h"
#include "hmc/version.h"
#include "own_words.h"
#include "pool.h"
#include "prepared.h"
#include "regions.h"

PYBIND11_MODULE(_core, module) {
  module.doc() = "The C++ side of the hmc package. Import hmc instead.";
  module.attr("__version__") = hmc::kVersion;
  hmc::python::bindArrays(module);
  hmc::python::bindMemory(module);
  hmc::python::bindCommunicator(module);
  // The docstrings of these begin with a signature that inspect understands.
  pybind11::options plain;
  plain.disable_function_signatures();
  hmc::python::bindSession(module);
  hmc::python::bindTransfer(module);
  hmc::python::bindGrant(module);
  hmc::python::bindRegion(module);
  hmc::python::bindRemote(module);
  hmc::python::bindPrepared(module);
  hmc::python::bindPeer(module);
  hmc::python::bindNode(module);
  hmc::python::bindPool(module);
  hmc::python::bindGathering(module);
  hmc::python::bindCollective(module);
  hmc::python::bindBaselines(module);
  hmc::python::useOwnWords(module);
}
