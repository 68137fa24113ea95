#include "quick_method.h"

#include <algorithm>
#include <string>

namespace hmc::python {

namespace py = pybind11;

namespace {

[[noreturn]] void refuse(const char* method, const std::string& why) {
  throw py::type_error(std::string(method) + "() " + why);
}

}  // namespace

void sortArguments(const char* method, const char* const* names, size_t required, size_t count,
                   PyObject* const* given, size_t positional, PyObject* givenNames,
                   py::handle* sorted) {
  if (positional > count) {
    refuse(method, "takes at most " + std::to_string(count) + " arguments, not " +
                       std::to_string(positional));
  }
  std::copy_n(given, positional, sorted);
  const Py_ssize_t named = givenNames ? PyTuple_GET_SIZE(givenNames) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* name = PyTuple_GET_ITEM(givenNames, i);
    const auto* found = std::find_if(names, names + count, [&](const char* candidate) {
      return PyUnicode_CompareWithASCIIString(name, candidate) == 0;
    });
    const auto index = static_cast<size_t>(found - names);
    if (index == count) refuse(method, "has no parameter " + py::cast<std::string>(py::repr(name)));
    if (sorted[index]) refuse(method, std::string("was given ") + names[index] + " twice");
    sorted[index] = given[positional + static_cast<size_t>(i)];
  }
  for (size_t i = 0; i < required; ++i) {
    if (!sorted[i]) refuse(method, std::string("needs ") + names[i]);
  }
}

void addQuickMethod(py::handle type, const char* name, QuickMethod method, const char* doc) {
  // Python keeps a pointer to it.
  auto* definition =
      new PyMethodDef{name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(method)),
                      METH_FASTCALL | METH_KEYWORDS, doc};
  const auto made = py::reinterpret_steal<py::object>(
      PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), definition));
  if (!made) throw py::error_already_set();
  py::setattr(type, name, made);
}

}  // namespace hmc::python
