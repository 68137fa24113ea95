#pragma once

#include <pybind11/pybind11.h>

#include <array>

// Methods of pybind11's classes that bypass its dispatcher, for the few that are called most. The
// dispatcher reads so much memory that it takes one to two microseconds after a copy of 1 MiB,
// which has evicted all of that memory from the cache.
namespace hmc::python {

// The arguments of a call in the order of the parameters; optional ones may be null.
template <size_t count>
using Arguments = std::array<pybind11::handle, count>;

// Assigns positional and named arguments to parameters, or throws TypeError.
void sortArguments(const char* method, const char* const* names, size_t required, size_t count,
                   PyObject* const* given, size_t positional, PyObject* givenNames,
                   pybind11::handle* sorted);

// The C++ object of an instance of its class.
template <class T>
T& valueOf(PyObject* object) {
  auto* instance = reinterpret_cast<pybind11::detail::instance*>(object);
  void* value = instance->get_value_and_holder().value_ptr();
  if (!value) throw pybind11::type_error("this object was made without its __init__");
  return *static_cast<T*>(value);
}

// Runs `work` and turns its exceptions into Python's: null if there was one. The unwinding that
// ends a thread when the interpreter ends passes through, as it does through the dispatcher.
template <class Work>
PyObject* forPython(Work&& work) {
  try {
    work();
    return pybind11::none().release().ptr();
  } catch (pybind11::error_already_set& error) {
    error.restore();
  } catch (pybind11::builtin_exception& error) {
    error.set_error();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

using QuickMethod = PyObject* (*)(PyObject* self, PyObject* const* given, Py_ssize_t positional,
                                  PyObject* givenNames);

// `name` and `doc`, whose first line is the signature, are never freed.
void addQuickMethod(pybind11::handle type, const char* name, QuickMethod method, const char* doc);

}  // namespace hmc::python
