#include <pybind11/stl.h>

#include <cstdint>

#include "errors.h"
#include "event_loop.h"
#include "quick_method.h"
#include "region_type.h"
#include "torch.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

PyTypeObject* regionType = nullptr;  // hmc.Region

char* startOf(const Region& region) {
  return static_cast<char*>(region.memory->data()) + region.range.offset;
}

// `device` is null where the memory has to be asked for it.
Handle<LocalRegion> registerMemory(const Handle<Node>& node, const std::string& name, void* data,
                                   size_t size, const Device* device, Access access,
                                   std::shared_ptr<const void> owner,
                                   const TypeHandle& type = nullptr) {
  auto add = [&, &to = *node] {
    const ArrayType& array = type ? *type : ArrayType();
    return device ? to.registerMemory(name, data, size, *device, access, std::move(owner), array)
                  : to.registerMemory(name, data, size, access, std::move(owner), array);
  };
  // For one transfer nobody is asked, which is quicker than releasing the GIL.
  const bool atOnce = name.empty() && device;
  return Handle<LocalRegion>(check(atOnce ? add() : withoutGil(add)));
}

// Anew for every transfer: torch frees memory and uses its addresses again between two calls, so
// what was registered for an address says nothing about what lies there now.
Region registerTensor(const Handle<Node>& node, py::handle object, const torch::Tensor& tensor,
                      const std::string& name, Access access, const TypeHandle& type = nullptr) {
  auto memory = registerMemory(node, name, tensor.data, tensor.size, &tensor.device, access,
                               ownedBy(py::reinterpret_borrow<py::object>(object)), type);
  return {node, std::move(memory), {0, tensor.size}, access, false, type};
}

// What hmc.arrays.Span says of an object.
Region registerSpan(const Handle<Node>& node, const py::object& span, const std::string& name,
                    Access access, const TypeHandle& type = nullptr) {
  static char nothing = 0;  // what an empty object is registered as
  const auto size = py::cast<size_t>(span.attr("nbytes"));
  auto* data = reinterpret_cast<void*>(py::cast<uintptr_t>(span.attr("pointer")));  // NOLINT
  if (size == 0) data = &nothing;
  const auto device = py::cast<std::string>(span.attr("device"));
  const bool exact = size != 0 && (device == "cpu" || device.find(':') != std::string::npos);
  const Device where = exact ? deviceFrom(span.attr("device")) : Device();
  auto memory = registerMemory(node, name, data, size == 0 ? 1 : size, exact ? &where : nullptr,
                               access, ownedBy(span.attr("owner")), type);
  const bool readOnly = !py::cast<bool>(span.attr("writable"));
  return {node, std::move(memory), {0, size}, access, readOnly, type};
}

// Of what hmc.arrays says: 0 is none.
void* streamFrom(const py::object& handle) {
  return reinterpret_cast<void*>(py::cast<uintptr_t>(handle));  // NOLINT
}

// torch's current stream there, if it uses such devices.
void* streamOn(const Device& device) {
  if (const auto stream = torch::currentStream(device)) return *stream;
  return streamFrom(callPython(inArrays("stream_on"), py::str(device.toString())));
}

// Views of it keep the region, and so the memory, alive.
int fillBuffer(PyObject* self, Py_buffer* view, int flags) {
  try {
    const auto& region = py::cast<const Region&>(py::handle(self));
    if (!region.memory->device().isHost()) {
      PyErr_Format(PyExc_BufferError,
                   "memory on %s is not CPU memory: get it into CPU memory first, or use "
                   "__cuda_array_interface__",
                   region.memory->device().toString().c_str());
      return -1;
    }
    return PyBuffer_FillInfo(view, self, startOf(region),
                             static_cast<Py_ssize_t>(region.range.size), region.readOnly ? 1 : 0,
                             flags);
  } catch (py::error_already_set& error) {
    error.restore();
    return -1;
  }
}

void addBuffer(PyHeapTypeObject* type) {
  type->as_buffer.bf_getbuffer = fillBuffer;
  type->ht_type.tp_as_buffer = &type->as_buffer;
}

py::dict cudaArrayInterface(const Region& region) {
  if (region.memory->device().kind != DeviceKind::cuda)
    throw py::attribute_error("this region is not on a CUDA device: it has the buffer protocol");
  return cudaArray(startOf(region), region.range.size, region.readOnly);
}

}  // namespace

// The module is kept: importing what is imported takes a microsecond. Not initialised in one
// statement: a thread that waits for another's import would keep the GIL.
py::object inArrays(const char* function) {
  static py::handle module;
  if (!module) module = py::module_::import("hmc.arrays").release();
  return module.attr(function);
}

py::dict cudaArray(void* data, size_t size, bool readOnly) {
  py::dict all;
  all["shape"] = py::make_tuple(size);
  all["typestr"] = "|u1";
  all["data"] = py::make_tuple(reinterpret_cast<uintptr_t>(data), readOnly);
  all["version"] = 3;
  return all;
}

std::string title(const Region& region) {
  const std::string& name = region.memory->name();
  return name.empty() ? "this region" : "region \"" + name + "\"";
}

Region registerObject(const Handle<Node>& node, py::handle object, const std::string& name,
                      Access access) {
  if (const auto tensor = torch::describe(object))
    return registerTensor(node, object, *tensor, name, access, typeOfObject(object));
  const py::object span = callPython(inArrays("span_of"), object);
  const std::string kind = Py_TYPE(object.ptr())->tp_name;
  if (!py::cast<bool>(span.attr("contiguous"))) {
    raise(Code::invalidArgument,
          "this " + kind + " is not contiguous: register the whole array that it is a part of");
  }
  if (access == Access::readWrite && !py::cast<bool>(span.attr("writable"))) {
    raise(Code::invalidArgument, "this " + kind +
                                     " is read-only: register it with access=\"r\", or a "
                                     "writable copy of it");
  }
  if (py::cast<size_t>(span.attr("nbytes")) == 0)
    raise(Code::invalidArgument, "this " + kind + " is empty: register at least one byte");
  return registerSpan(node, span, name, access, typeOfObject(object));
}

void* streamFor(const Region& region, py::handle named) {
  if (named && !named.is_none()) return streamFrom(callPython(inArrays("stream_handle"), named));
  const Device device = region.memory->device();
  return device.isHost() ? nullptr : streamOn(device);
}

LocalSide::LocalSide(const Handle<Node>& node, py::handle object, py::handle stream, bool writes)
    : node_(node), access_(writes ? Access::readWrite : Access::read) {
  const bool named = stream && !stream.is_none();
  if (named) stream_ = streamFrom(callPython(inArrays("stream_handle"), stream));
  if (PyObject_TypeCheck(object.ptr(), regionType)) {
    const auto& region = valueOf<Region>(object.ptr());
    if (writes && region.readOnly) {
      raise(Code::invalidArgument,
            title(region) +
                " is read-only memory and cannot receive data: use a writable "
                "object");
    }
    region_ = &region;
    if (!named) stream_ = streamFor(region, stream);
    return;
  }
  const auto tensor = torch::describe(object);
  if (tensor && !tensor->device.isHost()) {
    region_ = &made_.emplace(registerTensor(node, object, *tensor, "", access_));
    if (!named) stream_ = streamOn(tensor->device);
    return;
  }
  bytes_ = tensor ? HostBytes{py::reinterpret_borrow<py::object>(object),
                              static_cast<char*>(tensor->data), tensor->size, false}
                  : hostBytesOf(object);
  if (bytes_ && !(writes && bytes_->readOnly)) return;
  bytes_.reset();
  const py::object span = callPython(inArrays(writes ? "destination" : "source"), object);
  region_ = &made_.emplace(registerSpan(node, span, "", access_));
  if (!named && !made_->memory->device().isHost())
    stream_ = streamFrom(callPython(inArrays("stream_of"), span, object));
}

void LocalSide::registerBytes() {
  const Device host;
  auto memory =
      registerMemory(node_, "", bytes_->data, bytes_->size, &host, access_, ownedBy(bytes_->owner));
  region_ = &made_.emplace(
      Region{node_, std::move(memory), {0, bytes_->size}, access_, bytes_->readOnly, nullptr});
}

void bindRegion(py::module_& module) {
  PublicClass<Region> region(module, "Region", py::custom_type_setup(addBuffer),
                             R"(Memory of this process that transfers use and peers can reach.

Made by Node.register and Node.allocate. region[a:b] is a part of it, in bytes.
For CPU memory, numpy.asarray(region) and memoryview(region) show it without a
copy. It stays registered until the last region, slice, view and transfer that uses
it is gone; the Node keeps regions that have a name.)");
  regionType = reinterpret_cast<PyTypeObject*>(region.ptr());
  region
      .property("name", "The name that peers open it by; empty if they cannot.",
                [](const Region& self) { return self.memory->name(); })
      .property("device", "Where it lies: \"cpu\", \"cuda:0\".",
                [](const Region& self) { return self.memory->device().toString(); })
      .property("access", "What peers may do: \"r\" (read) or \"rw\" (read and write).",
                [](const Region& self) { return accessWord(self.access); })
      .property("pointer", "The address of its first byte.",
                [](const Region& self) { return reinterpret_cast<uintptr_t>(startOf(self)); })
      .property("__cuda_array_interface__", "For array libraries, if it lies on a CUDA device.",
                cudaArrayInterface)
      .def(
          "revoke",
          [](const Region& self, py::handle timeout, const std::optional<Grant>& grant) {
            const Timeout time = timeoutFrom(timeout);
            check(withoutGil([&, &memory = *self.memory] {
              return grant ? memory.revoke(*grant, time) : memory.revoke(time);
            }));
          },
          py::arg("timeout") = 30, py::arg("grant") = py::none(),
          R"(revoke(self, timeout=30, grant=None)
--

Take the memory back: when this returns, no peer reads or writes it any more.

A slice revokes the whole region. With a Grant that this region gave, only what was
opened with it and those made of it is taken back. A peer that does not confirm in
time is disconnected, and DeadlineExceeded names it.)")
      .def(
          "revoke_async",
          [](const py::object& self, py::handle timeout, py::handle grant) {
            return inThread(self, "revoke", timeout, grant);
          },
          py::arg("timeout") = 30, py::arg("grant") = py::none(),
          "revoke_async(self, timeout=30, grant=None)\n--\n\nrevoke() for `await`.")
      .def(
          "grant",
          [](const Region& self, std::optional<PeerOf> peer, std::optional<std::string> access,
             std::optional<double> lifetime) {
            GrantOptions options = optionsFrom({std::move(access), lifetime, std::move(peer)});
            options.offset = self.range.offset;
            options.size = self.range.size;
            return check(self.memory->grant(options));
          },
          py::arg("peer") = py::none(), py::arg("access") = py::none(),
          py::arg("lifetime") = py::none(), R"(grant(self, peer=None, access=None, lifetime=None)
--

Allow these bytes to whoever has the Grant, or with `peer` to that Peer alone.

region[a:b].grant() is for a part of the region. `access` is "r" or "rw", as the
region's by default. After `lifetime` seconds, by this host's wall clock, the memory
is taken back by itself.)")
      .def("__repr__", [](const Region& self) {
        const std::string& name = self.memory->name();
        return "<hmc.Region of " + std::to_string(self.range.size) + " bytes on " +
               self.memory->device().toString() + (name.empty() ? "" : ", \"" + name + "\"") + ">";
      });
  bindRange(region);
  bindType(region);
}

}  // namespace hmc::python
