#include "documented.h"

#include <chrono>

namespace hmc::python {

namespace py = pybind11;

namespace {

std::string typeName(py::handle value) {
  return Py_TYPE(value.ptr())->tp_name;
}

// True when the number fits.
bool asNumber(py::handle integer, uint64_t largest, uint64_t& number) {
  number = PyLong_AsUnsignedLongLong(integer.ptr());
  if (number == UINT64_MAX && PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  return number <= largest;
}

}  // namespace

void raiseLast() {
  raise(lastStatus());
}

void check(status_t status) {
  if (status != status_t::SUCCESS) raiseLast();
}

void checkPeer(status_t status) {
  if (status == status_t::SUCCESS) return;
  if (status == status_t::NOT_FOUND) raise("not connected", lastError());
  raiseLast();
}

uint64_t numberArgument(py::handle value, const char* name, uint64_t largest) {
  uint64_t number = 0;
  if (PyLong_Check(value.ptr()) && asNumber(value, largest, number)) return number;
  const auto index = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  if (!index) {
    PyErr_Clear();
    throw py::type_error(std::string(name) + " must be an integer, not " + typeName(value));
  }
  if (asNumber(index, largest, number)) return number;
  throw py::value_error(std::string(name) + " is " + py::str(index).cast<std::string>() +
                        ": it must be 0 to " + std::to_string(largest));
}

std::string textArgument(py::handle value, const char* name) {
  Py_ssize_t size = 0;
  const char* text =
      PyUnicode_Check(value.ptr()) ? PyUnicode_AsUTF8AndSize(value.ptr(), &size) : nullptr;
  if (text) return std::string(text, static_cast<size_t>(size));
  PyErr_Clear();
  throw py::type_error(std::string(name) + " must be a str, not " + typeName(value));
}

ConnType connArgument(py::handle value) {
  if (!PyLong_Check(value.ptr()))
    throw py::type_error("conn must be a hmc.ConnType, not " + typeName(value));
  constexpr long kNone = 999;
  long number = PyLong_AsLong(value.ptr());
  if (number == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    number = kNone;
  }
  return static_cast<ConnType>(number);
}

Communicator::Timeout timeoutArgument(py::handle value) {
  if (value.is_none()) return Communicator::Timeout(Communicator::kUsual);
  const double seconds = PyFloat_AsDouble(value.ptr());
  if (PyErr_Occurred()) {
    PyErr_Clear();
    throw py::type_error("timeout must be a number of seconds or None, not " + typeName(value));
  }
  if (!(seconds >= 0)) {
    throw py::value_error("timeout is " + py::str(value).cast<std::string>() +
                          ": it must be 0 or more seconds, or None for the usual one");
  }
  constexpr double kLongest = 1e9;  // seconds: some thirty years
  return Communicator::Timeout(
      static_cast<int64_t>((seconds < kLongest ? seconds : kLongest) * 1000));
}

}  // namespace hmc::python
