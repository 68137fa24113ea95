#include "arguments.h"

#include <pybind11/stl.h>

#include <cmath>
#include <optional>

#include "errors.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

std::string shown(double number) {
  return py::cast<std::string>(py::repr(py::float_(number)));
}

// Of a slice; counted from the end when negative.
Py_ssize_t bound(PyObject* given, Py_ssize_t size, Py_ssize_t otherwise) {
  if (given == Py_None) return otherwise;
  const Py_ssize_t value = PyNumber_AsSsize_t(given, nullptr);  // what is too large is the largest
  if (value == -1 && PyErr_Occurred()) throw py::error_already_set();
  return value < 0 ? value + size : value;
}

}  // namespace

Timeout timeoutFrom(py::handle given) {
  if (given.is_none()) return Timeout::max();
  const double seconds = PyFloat_AsDouble(given.ptr());
  if (PyErr_Occurred()) {
    PyErr_Clear();
    throw py::type_error("timeout is " + py::cast<std::string>(py::repr(given)) +
                         ": pass seconds as a number, or None to wait without an end");
  }
  if (!(seconds >= 0)) {
    raise(Code::invalidArgument,
          "a timeout of " + shown(seconds) + " seconds: give 0 or more, or None for no end");
  }
  const double nanoseconds = seconds * 1e9;
  if (nanoseconds >= static_cast<double>(Timeout::max().count())) return Timeout::max();
  return Timeout(static_cast<Timeout::rep>(nanoseconds));
}

std::chrono::milliseconds millisecondsFrom(double seconds, const char* what) {
  if (!(seconds >= 0.001 && seconds <= 86400)) {
    raise(Code::invalidArgument, std::string(what) + " of " + shown(seconds) +
                                     " seconds: it is at least 0.001 and at most 86400 (a day)");
  }
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

Access accessFrom(const std::string& word) {
  if (word == "r") return Access::read;
  if (word == "rw") return Access::readWrite;
  raise(Code::invalidArgument,
        "access \"" + word + "\": it is \"r\" (peers may read) or \"rw\" (read and write)");
}

const char* accessWord(Access access) {
  return access == Access::read ? "r" : "rw";
}

Device deviceFrom(py::handle device) {
  Device parsed;
  const Status status = parseDevice(py::cast<std::string>(py::str(device)), parsed);
  if (!status.ok()) raise(Code::invalidArgument, status.message());
  return parsed;
}

std::string bytesFrom(const py::buffer& data) {
  return py::cast<std::string>(py::bytes(py::memoryview(data).attr("tobytes")()));
}

size_t sizeFrom(py::handle number, const char* what) {
  const std::string shown = py::cast<std::string>(py::repr(number));
  const auto integer = py::reinterpret_steal<py::object>(PyNumber_Index(number.ptr()));
  if (!integer) {
    PyErr_Clear();
    throw py::type_error(std::string(what) + " is " + shown + ": pass an integer");
  }
  const size_t size = PyLong_AsSize_t(integer.ptr());
  if (PyErr_Occurred()) {
    PyErr_Clear();
    raise(Code::invalidArgument,
          std::string(what) + " is " + shown + ": it is 0 or more, and has at most 64 bits");
  }
  return size;
}

Names namesFrom(py::handle given, const char* what) {
  if (given.is_none()) return std::nullopt;
  if (py::isinstance<py::str>(given)) return Names({py::cast<std::string>(given)});
  try {
    return py::cast<std::vector<std::string>>(py::list(py::reinterpret_borrow<py::object>(given)));
  } catch (const std::exception&) {  // it is no sequence, or not of str
    throw py::type_error(std::string(what) + " is " + py::cast<std::string>(py::repr(given)) +
                         ": pass a list of names, or one name");
  }
}

TlsOptions tlsFrom(const std::optional<std::string>& mode, py::handle givenCertificates,
                   const std::string& keyPassword, py::handle crl, py::handle exceptions) {
  const Names certificates = namesFrom(givenCertificates, "certificates");
  TlsOptions options;
  if (mode && *mode != "off" && *mode != "required")
    raise(Code::invalidArgument, "tls is \"" + *mode + "\": it is \"off\" or \"required\"");
  if (mode) options.mode = *mode == "off" ? TlsOptions::Mode::off : TlsOptions::Mode::required;
  if (certificates && certificates->size() != 3) {
    raise(Code::invalidArgument, std::to_string(certificates->size()) +
                                     " certificates: name the files of the CA, of the "
                                     "certificate and of its key");
  }
  if (certificates) {
    options.ca = certificates->at(0);
    options.certificate = certificates->at(1);
    options.key = certificates->at(2);
  }
  options.keyPassword = keyPassword;
  for (const std::string& list : namesFrom(crl, "tls_crl").value_or(Names::value_type()))
    options.crl += (options.crl.empty() ? "" : ":") + list;
  if (auto names = namesFrom(exceptions, "tls_exceptions")) options.exceptions = *std::move(names);
  return options;
}

Range sliceFrom(py::handle index, size_t size, const std::string& what) {
  if (!PySlice_Check(index.ptr())) {
    throw py::type_error(what + " takes slices such as [a:b], not " +
                         py::cast<std::string>(py::repr(index)));
  }
  const auto* slice = reinterpret_cast<PySliceObject*>(index.ptr());
  if (slice->step != Py_None && bound(slice->step, 0, 1) != 1) {
    raise(Code::invalidArgument,
          "a slice of " + what +
              " has no step: use put_strided, get_strided or copy_2d for such a copy");
  }
  const auto end = static_cast<Py_ssize_t>(size);
  const Py_ssize_t start = bound(slice->start, end, 0);
  const Py_ssize_t stop = bound(slice->stop, end, end);
  if (start < 0 || stop > end || start > stop) {
    raise(Code::outOfRange, py::cast<std::string>(py::repr(index)) + " of " + what +
                                ", which has " + std::to_string(size) +
                                " bytes: a slice must lie within them");
  }
  return {static_cast<size_t>(start), static_cast<size_t>(stop - start)};
}

}  // namespace hmc::python
