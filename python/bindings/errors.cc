#include "errors.h"

namespace hmc::python {

namespace py = pybind11;

void raise(const Status& status) {
  const py::object make = py::module_::import("hmc.errors").attr("from_core");
  const py::object exception = make(codeName(status.code()), status.message());
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw py::error_already_set();
}

}  // namespace hmc::python
