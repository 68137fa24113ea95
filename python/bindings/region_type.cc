#include "region_type.h"

#include <pybind11/stl.h>

#include "errors.h"
#include "interruptible.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

// A function of hmc.views, which is imported when it is first needed.
py::object inViews(const char* function) {
  return py::module_::import("hmc.views").attr(function);
}

TypeHandle typeFrom(const py::object& pair) {
  if (pair.is_none()) return nullptr;
  auto [dtype, shape] = py::cast<std::pair<std::string, std::vector<uint64_t>>>(pair);
  return std::make_shared<const ArrayType>(ArrayType{std::move(dtype), std::move(shape)});
}

// A peer may say anything of its region. What does not fit its size, where we can tell, is nothing.
bool fitsSize(const ArrayType& type, size_t size) {
  size_t bytes = itemSizeOf(type.dtype);
  if (type.dtype.empty()) return false;
  if (bytes == 0) return true;
  for (const uint64_t length : type.shape) {
    if (__builtin_mul_overflow(bytes, length, &bytes)) return false;
  }
  return bytes == size;
}

ArrayView arrayViewOf(const py::object& self, const Region& region) {
  auto* at = static_cast<char*>(region.memory->data()) + region.range.offset;
  return {self,        at,           region.range.size, region.memory->device(), region.readOnly,
          region.type, title(region)};
}

ArrayView arrayViewOf(const py::object& self, Remote& remote) {
  auto* at = static_cast<char*>(remote.memory->data());
  if (!at) {
    const std::string device = remote.memory->device().toString();
    throw py::buffer_error(title(remote) + " on " + device + " is not mapped here but reached by " +
                           remote.memory->path() +
                           ": get() it into an array of your own. Memory of the CPU that a Node "
                           "of the same host allocates is mapped");
  }
  return {self,
          at + remote.range.offset,
          remote.range.size,
          Device(),
          remote.memory->access() == Access::read,
          typeOf(remote),
          title(remote)};
}

py::object asNumpy(const ArrayView& view) {
  if (!view.device.isHost()) {
    throw py::buffer_error(view.title + " is on " + view.device.toString() +
                           ", which numpy cannot show: use torch.from_dlpack, or get it into "
                           "memory of the CPU");
  }
  return inViews("as_numpy")(viewOf(view.owner, view.data, view.size, view.readOnly),
                             dtypeOf(view.type), shapeOf(view.type, view.size), view.title);
}

template <class T>
void bindViews(PublicClass<T>& type) {
  type.def(
          "numpy",
          [](const py::object& self) { return asNumpy(arrayViewOf(self, py::cast<T&>(self))); },
          R"(numpy(self)
--

The memory as an array of numpy's, without a copy, in its dtype and shape.

BufferError says why where this process does not see the memory. A slice is an array of
bytes.)")
      .def(
          "__dlpack__",
          [](const py::object& self, py::handle /*stream*/, py::handle maxVersion,
             py::handle device, py::handle copy) {
            return exportDlpack(arrayViewOf(self, py::cast<T&>(self)), maxVersion, device, copy);
          },
          py::kw_only(), py::arg("stream") = py::none(), py::arg("max_version") = py::none(),
          py::arg("dl_device") = py::none(), py::arg("copy") = py::none(),
          R"(__dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None)
--

For array libraries: numpy.from_dlpack(region), torch.from_dlpack(region).)")
      .def(
          "__dlpack_device__",
          [](const py::object& self) {
            return dlpackDevice(arrayViewOf(self, py::cast<T&>(self)));
          },
          "__dlpack_device__(self)\n--\n\nDLPack's numbers of the device.");
}

}  // namespace

TypeHandle typeOfObject(py::handle object) {
  return typeFrom(inViews("type_of")(object));
}

WantedArray arrayFrom(py::handle dtype, py::handle shape, py::handle nbytes) {
  if (dtype.is_none() && shape.is_none()) return {nullptr, sizeFrom(nbytes, "nbytes")};
  const auto type = typeFrom(inViews("wanted")(dtype, shape));
  size_t size = itemSizeOf(type->dtype);
  if (size == 0) {
    raise(Code::invalidArgument, "dtype \"" + type->dtype +
                                     "\": it is a number such as \"float32\", \"bfloat16\", "
                                     "\"uint8\" or \"bool\"");
  }
  for (const uint64_t length : type->shape) {
    if (__builtin_mul_overflow(size, length, &size))
      raise(Code::invalidArgument, "the shape has more bytes than there are addresses");
  }
  if (!nbytes.is_none() && sizeFrom(nbytes, "nbytes") != size) {
    raise(Code::invalidArgument, "nbytes is " + py::cast<std::string>(py::repr(nbytes)) +
                                     ", but dtype and shape make " + std::to_string(size) +
                                     ": leave nbytes out");
  }
  return {type, size};
}

const TypeHandle& typeOf(Remote& remote) {
  if (remote.typeKnown) return remote.type;
  const Peer& peer = *remote.peer;
  auto info = check(interruptible([kept = remote.peer, &peer, name = remote.name] {
    return peer.describe(name, kDefaultTimeout);
  }));
  if (info.size == remote.range.size && fitsSize(info.type, info.size))
    remote.type = std::make_shared<const ArrayType>(std::move(info.type));
  remote.typeKnown = true;
  return remote.type;
}

py::str dtypeOf(const TypeHandle& type) {
  return type ? py::str(type->dtype) : py::str("uint8");
}

py::tuple shapeOf(const TypeHandle& type, size_t nbytes) {
  if (!type) return py::make_tuple(nbytes);
  py::tuple shape(type->shape.size());
  for (size_t i = 0; i < type->shape.size(); ++i) shape[i] = type->shape[i];
  return shape;
}

void bindType(PublicClass<Region>& region) {
  region
      .property("dtype", "Of the array that was registered: \"float32\"; \"uint8\" for bytes.",
                [](const Region& self) { return dtypeOf(self.type); })
      .property("shape", "Of that array; (nbytes,) for bytes.",
                [](const Region& self) { return shapeOf(self.type, self.range.size); });
  bindViews(region);
}

void bindType(PublicClass<Remote>& remote) {
  remote
      .property("dtype", "Of the array that the peer registered: \"float32\"; \"uint8\" for bytes.",
                [](Remote& self) { return dtypeOf(typeOf(self)); })
      .property("shape", "Of that array; (nbytes,) for bytes.",
                [](Remote& self) { return shapeOf(typeOf(self), self.range.size); });
  bindViews(remote);
}

}  // namespace hmc::python
