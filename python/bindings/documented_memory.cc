#include <memory>
#include <stdexcept>

#include "documented.h"
#include "hmc/conn_buffer.h"
#include "regions.h"
#include "without_gil.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

// What Memory.allocateBuffer() returns; frees itself.
struct Buffer {
  Buffer(std::shared_ptr<Memory> memory, void* ptr, size_t bytes)
      : owner(std::move(memory)), pointer(ptr), size(bytes) {}
  ~Buffer() { owner->freeBuffer(pointer); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  const std::shared_ptr<Memory> owner;
  void* pointer;
  const size_t size;
};

// One with the buffer protocol.
struct HostBuffer : Buffer {
  using Buffer::Buffer;
};

template <class T, class... Arguments>
std::shared_ptr<T> makeOrRaise(Arguments... arguments) {
  try {
    return sharedWithoutGil(new T(arguments...));
  } catch (const std::runtime_error&) {
    raiseLast();  // has the sentence that the constructor left
  }
}

template <auto method>
py::tuple allocated(const std::shared_ptr<Memory>& memory, size_t size) {
  void* pointer = nullptr;
  const status_t status = ((*memory).*method)(&pointer, size);
  if (status != status_t::SUCCESS) return py::make_tuple(status, py::none());
  if (memory->getMemoryType() == MemoryType::CPU)
    return py::make_tuple(status, std::make_unique<HostBuffer>(memory, pointer, size));
  return py::make_tuple(status, std::make_unique<Buffer>(memory, pointer, size));
}

template <class Copy>
status_t copying(bool atOnce, const Copy& copy) {
  if (atOnce) return copy();
  ReleasedGil release;
  return copy();
}

// Between the buffer and memory that Python names, on the host or on a device, by a method of
// ConnBuffer.
template <auto method, Direction direction, bool host>
status_t copyBuffer(ConnBuffer& buffer, py::handle object, size_t size, size_t offset) {
  const Place place(object, size, direction == Direction::get);
  const bool atOnce = host && size <= kShortCopy && buffer.mem_type == MemoryType::CPU;
  return copying(atOnce, [&] { return (buffer.*method)(place.pointer(), size, offset); });
}
constexpr auto kWriteHost = copyBuffer<&ConnBuffer::writeFromCpu, Direction::put, true>;
constexpr auto kReadHost = copyBuffer<&ConnBuffer::readToCpu, Direction::get, true>;
constexpr auto kWriteDevice = copyBuffer<&ConnBuffer::writeFromGpu, Direction::put, false>;
constexpr auto kReadDevice = copyBuffer<&ConnBuffer::readToGpu, Direction::get, false>;

template <auto copyHost, auto copyDevice>
void copyOrRaise(ConnBuffer& buffer, py::handle object, py::handle size, py::handle offset,
                 bool host) {
  check((host ? copyHost : copyDevice)(buffer, object, sizeArgument(size, "nbytes"),
                                       sizeArgument(offset, "offset")));
}

py::memoryview bytesOf(const std::shared_ptr<ConnBuffer>& buffer) {
  if (buffer->mem_type != MemoryType::CPU) {
    raise(Code::unsupported,
          "this buffer is memory of an accelerator, which Python cannot look into: copy it "
          "out with get_into()");
  }
  return viewOf(py::cast(buffer), buffer->ptr, buffer->buffer_size, false);
}

template <auto method>
status_t copyBetween(Memory& memory, py::handle to, py::handle from, size_t size) {
  const Place target(to, size, true);
  const Place source(from, size, false);
  ReleasedGil release;
  return (memory.*method)(target.pointer(), source.pointer(), size);
}

void bindMemoryClass(py::module_& module) {
  py::class_<Buffer>(module, "Buffer",
                     "Memory that Memory.allocateBuffer() returned; frees itself.")
      .def_property_readonly(
          "ptr", [](const Buffer& self) { return reinterpret_cast<uintptr_t>(self.pointer); })
      .def_readonly("size", &Buffer::size);
  py::class_<HostBuffer, Buffer>(module, "HostBuffer", py::buffer_protocol(),
                                 "A Buffer of host memory, with the buffer protocol.")
      .def_buffer([](HostBuffer& self) {
        return py::buffer_info(static_cast<uint8_t*>(self.pointer),
                               static_cast<py::ssize_t>(self.size));
      });

  const auto released = py::call_guard<ReleasedGil>();
  const py::arg to("dest");
  const py::arg from("src");
  const py::arg size("size");
  const py::arg_v type = py::arg("mem_type") = static_cast<int>(MemoryType::DEFAULT);
  py::class_<Memory, std::shared_ptr<Memory>>(
      module, "Memory", "Allocates and copies on one device. Copies are done when they return.")
      .def(py::init(&makeOrRaise<Memory, int, MemoryType>), py::arg("device_id"), type)
      .def("init", &Memory::init)
      .def("free", &Memory::free)
      .def("allocateBuffer", allocated<&Memory::allocateBuffer>, size,
           "(status, Buffer), or (status, None) on failure.")
      .def("allocatePeerableBuffer", allocated<&Memory::allocatePeerableBuffer>, size)
      .def(
          "freeBuffer",
          [](Memory& self, Buffer& buffer) {
            return self.freeBuffer(std::exchange(buffer.pointer, nullptr));
          },
          py::arg("buffer"), "Free it now, not with its last reference.")
      .def("copyHostToDevice", copyBetween<&Memory::copyHostToDevice>, to, from, size)
      .def("copyDeviceToHost", copyBetween<&Memory::copyDeviceToHost>, to, from, size)
      .def("copyDeviceToDevice", copyBetween<&Memory::copyDeviceToDevice>, to, from, size)
      .def("setDeviceIdAndMemoryType", &Memory::setDeviceIdAndMemoryType, released,
           py::arg("device_id"), type)
      .def("getMemoryType", &Memory::getMemoryType)
      .def("getInitStatus", &Memory::getInitStatus)
      .def("getDeviceId", &Memory::getDeviceId);
}

void bindConnBuffer(py::module_& module) {
  const py::arg size("size");
  const py::arg_v bias = py::arg("bias") = 0;
  // Methods with the documented names return a Status; write and read raise.
  py::class_<ConnBuffer, std::shared_ptr<ConnBuffer>>(
      module, "ConnBuffer", "The memory that puts and gets use, addressed by offset.")
      .def(py::init(&makeOrRaise<ConnBuffer, int, size_t, MemoryType>), py::arg("device_id"),
           py::arg("buffer_size"), py::arg("mem_type") = static_cast<int>(MemoryType::DEFAULT))
      .def_property_readonly(
          "ptr", [](const ConnBuffer& self) { return reinterpret_cast<uintptr_t>(self.ptr); })
      .def_readonly("buffer_size", &ConnBuffer::buffer_size)
      .def_readonly("mem_type", &ConnBuffer::mem_type)
      .def_readonly("device_id", &ConnBuffer::device_id)
      .def("view", &bytesOf, "The bytes of a buffer in host memory, as a memoryview.")
      .def("writeFromCpu", kWriteHost, py::arg("src"), size, bias)
      .def("readToCpu", kReadHost, py::arg("dest"), size, bias)
      .def("writeFromGpu", kWriteDevice, py::arg("src"), size, bias)
      .def("readToGpu", kReadDevice, py::arg("dest"), size, bias)
      .def("copyWithin", &ConnBuffer::copyWithin, py::call_guard<ReleasedGil>(),
           py::arg("dst_bias"), py::arg("src_bias"), size)
      .def("write", copyOrRaise<kWriteHost, kWriteDevice>)
      .def("read", copyOrRaise<kReadHost, kReadDevice>)
      .def("copy_within", [](ConnBuffer& self, py::handle to, py::handle from, py::handle count) {
        const size_t target = sizeArgument(to, "dst_offset");
        const size_t source = sizeArgument(from, "src_offset");
        const size_t bytes = sizeArgument(count, "nbytes");
        check(copying(false, [&] { return self.copyWithin(target, source, bytes); }));
      });
}

}  // namespace

Place::Place(py::handle object, size_t size, bool written) {
  if (PyLong_Check(object.ptr())) {
    pointer_ = reinterpret_cast<void*>(sizeArgument(object, "the address"));
    return;
  }
  size_t room = 0;
  if (py::isinstance<Buffer>(object)) {
    const auto& buffer = object.cast<Buffer&>();
    pointer_ = buffer.pointer;
    room = buffer.size;
  } else {
    const int flags = written ? PyBUF_CONTIG : PyBUF_CONTIG_RO;
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw py::error_already_set();
    pointer_ = view_.buf;
    room = static_cast<size_t>(view_.len);
  }
  if (size <= room) return;
  if (view_.obj) PyBuffer_Release(&view_);
  raise(Code::outOfRange, "a copy of " + std::to_string(size) + " bytes " +
                              (written ? "into" : "from") + " an object of " +
                              std::to_string(room) + " bytes");
}

Place::~Place() {
  if (view_.obj) PyBuffer_Release(&view_);
}

void bindMemory(py::module_& module) {
  bindMemoryClass(module);
  bindConnBuffer(module);
  py::dict kinds;
#define HMC_ROW(kind, product, type, library) kinds[#kind] = #type;
  HMC_DEVICE_KINDS(HMC_ROW)
#undef HMC_ROW
  module.attr("DEVICE_KINDS") = kinds;
  module.def("memory_supported", &memory_supported, py::call_guard<ReleasedGil>(),
             "The MemoryType that DEFAULT means on this machine.");
}

}  // namespace hmc::python
