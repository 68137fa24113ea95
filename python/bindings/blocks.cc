// arguments.h: blocksFrom
#include <cctype>
#include <cstring>
#include <optional>

#include "arguments.h"
#include "errors.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

[[noreturn]] void refuseNegative(const char* what, size_t index, int64_t value) {
  raise(Code::invalidArgument, std::string(what) + "[" + std::to_string(index) + "] is " +
                                   std::to_string(value) + ": offsets and sizes are 0 or more");
}

using Column = std::vector<uint64_t>;

template <class T>
void readAll(const Py_buffer& view, const char* what, Column& column) {
  const auto* at = static_cast<const char*>(view.buf);
  const Py_ssize_t step = view.strides ? view.strides[0] : view.itemsize;
  for (size_t i = 0; i < column.size(); ++i, at += step) {
    T value;
    std::memcpy(&value, at, sizeof value);
    if constexpr (std::is_signed_v<T>) {
      if (value < 0) refuseNegative(what, i, value);
    }
    column[i] = value;
  }
}

template <class Signed>
void readEither(bool isSigned, const Py_buffer& view, const char* what, Column& column) {
  isSigned ? readAll<Signed>(view, what, column)
           : readAll<std::make_unsigned_t<Signed>>(view, what, column);
}

// By the struct module's code for a native integer, whose case is the sign.
bool readAs(char code, const Py_buffer& view, const char* what, Column& column) {
  if (!std::strchr("bBhHiIlLqQnN", code)) return false;
  const bool isSigned = std::islower(code) != 0;
  if (view.itemsize == 1) readEither<int8_t>(isSigned, view, what, column);
  if (view.itemsize == 2) readEither<int16_t>(isSigned, view, what, column);
  if (view.itemsize == 4) readEither<int32_t>(isSigned, view, what, column);
  if (view.itemsize == 8) readEither<int64_t>(isSigned, view, what, column);
  return true;
}

// None when the object has no buffer.
std::optional<Column> columnFromBuffer(py::handle object, const char* what) {
  struct View {
    Py_buffer buffer{};
    ~View() { PyBuffer_Release(&buffer); }
  } view;
  if (PyObject_GetBuffer(object.ptr(), &view.buffer, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  const std::string format = view.buffer.format ? view.buffer.format : "B";
  if (view.buffer.ndim != 1) {
    raise(Code::invalidArgument, std::string(what) + " has " + std::to_string(view.buffer.ndim) +
                                     " dimensions: pass one, as reshape(-1) makes it");
  }
  Column column(static_cast<size_t>(view.buffer.shape[0]));
  const bool native = format.size() == 1 || (format.size() == 2 && format[0] == '@');
  if (!native || !readAs(format.back(), view.buffer, what, column)) {
    raise(Code::invalidArgument, std::string(what) + " holds items of format \"" + format +
                                     "\": pass integers in this machine's byte order");
  }
  return column;
}

Column columnFromSequence(py::handle object, const char* what) {
  Column column;
  for (py::handle item : py::reinterpret_borrow<py::iterable>(object)) {
    const py::object number = py::reinterpret_steal<py::object>(PyNumber_Index(item.ptr()));
    if (!number) throw py::error_already_set();
    const uint64_t value = PyLong_AsUnsignedLongLong(number.ptr());
    if (PyErr_Occurred()) {
      PyErr_Clear();
      raise(Code::invalidArgument, std::string(what) + "[" + std::to_string(column.size()) +
                                       "] is " + py::cast<std::string>(py::str(number)) +
                                       ": offsets and sizes are 0 or more, and have 64 bits");
    }
    column.push_back(value);
  }
  return column;
}

Column columnFrom(py::handle object, const char* what) {
  if (auto column = columnFromBuffer(object, what)) return *std::move(column);
  // A tensor of torch on the CPU and its like.
  if (py::hasattr(object, "numpy")) return columnFrom(object.attr("numpy")(), what);
  if (py::isinstance<py::sequence>(object)) return columnFromSequence(object, what);
  throw py::type_error(std::string(what) + " is a " + Py_TYPE(object.ptr())->tp_name +
                       ": pass an array of integers");
}

// Arrays can have an index too, but then also a length.
bool isOneNumber(py::handle object) {
  if (!PyIndex_Check(object.ptr())) return false;
  if (PyObject_Size(object.ptr()) >= 0) return false;
  PyErr_Clear();
  return true;
}

void checkLength(const char* what, size_t length, size_t wanted) {
  if (length != wanted) {
    raise(Code::invalidArgument, "local_offsets has " + std::to_string(wanted) + " items and " +
                                     what + " " + std::to_string(length) +
                                     ": each block needs one of each");
  }
}

[[noreturn]] void refuseBlock(size_t index, const char* side, uint64_t offset, uint64_t size,
                              size_t end) {
  raise(Code::outOfRange, "block " + std::to_string(index) + ", " + std::to_string(size) +
                              " bytes at " + side + " offset " + std::to_string(offset) +
                              ", passes the end of that side's " + std::to_string(end) + " bytes");
}

bool fits(uint64_t offset, uint64_t size, size_t end) {
  return offset <= end && size <= end - offset;
}

}  // namespace

std::vector<Block> blocksFrom(py::handle localOffsets, py::handle remoteOffsets, py::handle sizes,
                              Range local, Range remote) {
  const Column here = columnFrom(localOffsets, "local_offsets");
  const Column there = columnFrom(remoteOffsets, "remote_offsets");
  checkLength("remote_offsets", there.size(), here.size());
  const bool same = isOneNumber(sizes);
  Column lengths;
  if (same) {
    lengths = columnFromSequence(py::make_tuple(sizes), "sizes");
  } else {
    lengths = columnFrom(sizes, "sizes");
    checkLength("sizes", lengths.size(), here.size());
  }
  std::vector<Block> blocks(here.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    const uint64_t size = lengths[same ? 0 : i];
    if (!fits(here[i], size, local.size)) refuseBlock(i, "local", here[i], size, local.size);
    if (!fits(there[i], size, remote.size)) refuseBlock(i, "remote", there[i], size, remote.size);
    blocks[i] = {local.offset + here[i], remote.offset + there[i], size};
  }
  return blocks;
}

}  // namespace hmc::python
