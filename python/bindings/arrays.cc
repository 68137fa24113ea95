#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "dlpack.h"
#include "regions.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

py::tuple describe(const dlpack::DLTensor& tensor, bool readOnly) {
  py::tuple shape(tensor.ndim);
  for (int32_t i = 0; i < tensor.ndim; ++i) shape[i] = tensor.shape[i];
  const size_t itemSize = (size_t{tensor.dtype.bits} * tensor.dtype.lanes + 7) / 8;
  py::object strides = py::none();
  if (tensor.strides) {
    py::tuple bytes(tensor.ndim);
    for (int32_t i = 0; i < tensor.ndim; ++i)
      bytes[i] = tensor.strides[i] * static_cast<int64_t>(itemSize);
    strides = bytes;
  }
  return py::make_tuple(reinterpret_cast<uintptr_t>(tensor.data) + tensor.byteOffset, shape,
                        strides, itemSize, tensor.device.type, tensor.device.id, readOnly);
}

// (pointer, shape, strides in bytes or None, item size, device type, device id, read-only). The
// capsule stays unconsumed: whoever drops it last gives the memory back.
py::tuple readDlpack(const py::capsule& capsule) {
  const std::string name = capsule.name() ? capsule.name() : "";
  if (name == "dltensor") return describe(*capsule.get_pointer<dlpack::DLTensor>(), false);
  if (name != "dltensor_versioned")
    throw py::type_error("a DLPack capsule is called dltensor, not " + name);
  auto* head = capsule.get_pointer<dlpack::VersionedHead>();
  if (head->major > dlpack::kNewestMajor)
    throw py::type_error("DLPack version " + std::to_string(head->major) + " is not known here");
  return describe(*reinterpret_cast<dlpack::DLTensor*>(head + 1),
                  (head->flags & dlpack::kReadOnly) != 0);
}

struct Layout {
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  size_t itemSize;
};

void gather(char*& to, const char* from, const Layout& layout, size_t dimension) {
  if (dimension == layout.shape.size()) {
    std::memcpy(to, from, layout.itemSize);
    to += layout.itemSize;
    return;
  }
  const int64_t count = layout.shape[dimension];
  const int64_t stride = layout.strides[dimension];
  const bool dense =
      dimension + 1 == layout.shape.size() && stride == static_cast<int64_t>(layout.itemSize);
  if (dense) {
    std::memcpy(to, from, static_cast<size_t>(count) * layout.itemSize);
    to += static_cast<size_t>(count) * layout.itemSize;
    return;
  }
  for (int64_t i = 0; i < count; ++i) gather(to, from + i * stride, layout, dimension + 1);
}

std::vector<int64_t> numbers(const py::tuple& tuple) {
  std::vector<int64_t> result;
  for (const auto& one : tuple) result.push_back(one.cast<int64_t>());
  return result;
}

// The elements of host memory that lie apart, one after the other in C order.
py::bytearray packed(uintptr_t pointer, const py::tuple& shape, const py::tuple& strides,
                     size_t itemSize, size_t size) {
  const Layout layout{numbers(shape), numbers(strides), itemSize};
  py::bytearray result(nullptr, size);
  char* to = PyByteArray_AsString(result.ptr());
  py::gil_scoped_release release;
  gather(to, reinterpret_cast<const char*>(pointer), layout, 0);
  return result;
}

// Memory that something else owns.
struct HostView {
  py::object owner;
  void* data;
  size_t size;
  bool readOnly;
};

uintptr_t addressOf(const py::object& object) {
  Py_buffer view;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_FULL_RO) != 0) throw py::error_already_set();
  const auto address = reinterpret_cast<uintptr_t>(view.buf);
  PyBuffer_Release(&view);
  return address;
}

// Does it consist of references to Python objects? Letters between colons are names of fields.
bool holdsObjects(const char* format) {
  bool name = false;
  for (; format && *format; ++format) {
    if (*format == ':') name = !name;
    if (*format == 'O' && !name) return true;
  }
  return false;
}

}  // namespace

std::optional<HostBytes> hostBytesOf(py::handle object) {
  if (PyBytes_CheckExact(object.ptr()) && PyBytes_GET_SIZE(object.ptr()) > 0) {
    return HostBytes{py::reinterpret_borrow<py::object>(object), PyBytes_AS_STRING(object.ptr()),
                     static_cast<size_t>(PyBytes_GET_SIZE(object.ptr())), true};
  }
  if (!PyObject_CheckBuffer(object.ptr())) return {};
  auto view = py::reinterpret_steal<py::object>(PyMemoryView_FromObject(object.ptr()));
  if (!view) {
    PyErr_Clear();  // hmc.arrays knows other ways
    return {};
  }
  const Py_buffer& buffer = *PyMemoryView_GET_BUFFER(view.ptr());
  if (buffer.len == 0 || !PyBuffer_IsContiguous(&buffer, 'C') || holdsObjects(buffer.format))
    return {};
  return HostBytes{std::move(view), static_cast<char*>(buffer.buf), static_cast<size_t>(buffer.len),
                   buffer.readonly != 0};
}

py::memoryview viewOf(py::object owner, void* data, size_t size, bool readOnly) {
  return py::memoryview(py::cast(HostView{std::move(owner), data, size, readOnly}));
}

void bindArrays(py::module_& module) {
  py::class_<HostView>(module, "HostView", py::buffer_protocol()).def_buffer([](HostView& self) {
    return py::buffer_info(static_cast<uint8_t*>(self.data), static_cast<py::ssize_t>(self.size),
                           self.readOnly);
  });
  module.def("read_dlpack", &readDlpack);
  module.def("address_of", &addressOf);
  module.def("packed", &packed);
}

}  // namespace hmc::python
