#include "without_gil.h"

#include <unistd.h>

namespace hmc::python {

namespace py = pybind11;

void takeGil(PyThreadState* state) noexcept {
  try {
    PyEval_RestoreThread(state);
  } catch (...) {  // Python ends the thread, which unwinds it
    for (;;) pause();
  }
}

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
