#include "own_words.h"

#include <string>

namespace py = pybind11;

namespace hmc::python {

namespace {

constexpr int kFlags = METH_VARARGS | METH_KEYWORDS;

// pybind11's, which is behind every function that it makes.
PyCFunctionWithKeywords dispatch = nullptr;

PyMethodDef* definitionOf(py::handle function) {
  PyObject* bare = function.ptr();
  if (bare != nullptr && PyInstanceMethod_Check(bare)) bare = PyInstanceMethod_GET_FUNCTION(bare);
  if (bare == nullptr || !PyCFunction_Check(bare)) return nullptr;
  return reinterpret_cast<PyCFunctionObject*>(bare)->m_ml;
}

PyCFunctionWithKeywords callOf(const PyMethodDef* definition) {
  return reinterpret_cast<PyCFunctionWithKeywords>(
      reinterpret_cast<void (*)()>(definition->ml_meth));
}

// Takes the error that is set, and sets it again in our words. What goes wrong meanwhile leaves it.
void reword(PyObject* arguments, PyObject* keywords) {
  py::error_already_set given;
  try {
    const std::string text = py::str(given.value());
    if (text.find("(): incompatible ") != std::string::npos) {
      const py::object words =
          py::module_::import("hmc.argument_errors")
              .attr("reworded")(
                  text, py::handle(arguments),
                  keywords == nullptr ? py::dict() : py::reinterpret_borrow<py::dict>(keywords));
      PyErr_SetObject(PyExc_TypeError, words.ptr());
      return;
    }
  } catch (const py::error_already_set&) {
  }
  given.restore();
}

PyObject* callInOurWords(PyObject* self, PyObject* arguments, PyObject* keywords) {
  PyObject* result = dispatch(self, arguments, keywords);
  if (result == nullptr && PyErr_ExceptionMatches(PyExc_TypeError) != 0)
    reword(arguments, keywords);
  return result;
}

void replace(py::handle function) {
  PyMethodDef* definition = definitionOf(function);
  if (definition == nullptr || definition->ml_flags != kFlags || callOf(definition) != dispatch)
    return;
  definition->ml_meth = reinterpret_cast<PyCFunction>(
      reinterpret_cast<void (*)()>(PyCFunctionWithKeywords{&callInOurWords}));
}

void replaceAll(const py::dict& names) {
  for (const auto& [name, value] : names) {
    // Of a static method, what it wraps.
    const bool isStatic = PyObject_TypeCheck(value.ptr(), &PyStaticMethod_Type) != 0;
    replace(isStatic ? py::object(value.attr("__func__"))
                     : py::reinterpret_borrow<py::object>(value));
  }
}

}  // namespace

void useOwnWords(const py::module_& module) {
  const py::cpp_function any([] {});
  const PyMethodDef* definition = definitionOf(any);
  if (definition == nullptr || definition->ml_flags != kFlags) return;  // another pybind11
  dispatch = callOf(definition);
  const auto names = py::reinterpret_borrow<py::dict>(module.attr("__dict__"));
  replaceAll(names);
  for (const auto& [name, value] : names) {
    if (PyType_Check(value.ptr())) replaceAll(py::dict(value.attr("__dict__")));
  }
}

}  // namespace hmc::python
