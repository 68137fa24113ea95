#include "call.h"

#include <unistd.h>

namespace hmc::python {

namespace py = pybind11;

py::object callPython(py::handle function, py::handle first, py::handle second) {
  PyObject* result = nullptr;
  try {
    // A null second argument ends the list.
    result =
        PyObject_CallFunctionObjArgs(function.ptr(), first.ptr(), second.ptr(), nullptr);  // NOLINT
  } catch (...) {  // no C++ exception comes out of Python: this ends the thread
    for (;;) pause();
  }
  if (!result) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}

}  // namespace hmc::python
