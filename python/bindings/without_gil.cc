#include "without_gil.h"

#include <unistd.h>

namespace hmc::python {

namespace py = pybind11;

void stayForever() {
  for (;;) pause();
}

void takeGil(PyThreadState* state) noexcept {
  try {
    PyEval_RestoreThread(state);
  } catch (...) {  // Python ends the thread, which unwinds it
    stayForever();
  }
}

py::object callPython(py::handle function, py::handle first, py::handle second) {
  PyObject* result = inPython([&] {
    // The first null argument ends the list.
    return PyObject_CallFunctionObjArgs(function.ptr(), first.ptr(), second.ptr(),
                                        nullptr);  // NOLINT
  });
  if (!result) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}

}  // namespace hmc::python
