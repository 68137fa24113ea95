#pragma once

#include <pybind11/pybind11.h>

#include <array>

// Methods of pybind11's classes that Python calls without its dispatcher, for the few that are
// called most. The dispatcher reads so much memory that behind a copy of 1 MiB, which has pushed
// all of it out of the processor's cache, it takes one to two microseconds.
namespace hmc::python {

// What a call was given, by the names of the parameters; the optional ones may be null.
template <size_t count>
using Arguments = std::array<pybind11::handle, count>;

// Sorts positional and named arguments out, or throws TypeError.
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

// Runs `work`, which may throw what pybind11 lets pass to Python. Null when it did. The end of a
// thread at the interpreter's end passes through, as it does through the dispatcher.
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

// `name` and `doc`, whose first line is the signature, live for ever.
void addQuickMethod(pybind11::handle type, const char* name, QuickMethod method, const char* doc);

}  // namespace hmc::python
