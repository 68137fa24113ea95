#include "errors.h"

namespace hmc::python {

namespace py = pybind11;

void raise(const Status& status) {
  raise(codeName(status.code()), status.message());
}

void raise(Code code, const std::string& sentence) {
  raise(codeName(code), sentence);
}

void raise(const char* code, const std::string& sentence) {
  const py::object make = py::module_::import("hmc.errors").attr("from_core");
  const py::object exception = make(code, sentence);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw py::error_already_set();
}

}  // namespace hmc::python
