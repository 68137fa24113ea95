#include "torch.h"

#include <cstdint>

#include "dlpack.h"
#include "without_gil.h"

namespace hmc::python::torch {

namespace py = pybind11;

namespace {

// Names that Python finds without hashing them. Never released, as everything that is kept here.
struct Names {
#define HMC_NAME(name) PyObject* const name = PyUnicode_InternFromString(#name);
  HMC_NAME(torch)
  HMC_NAME(layout)
  HMC_NAME(is_conj)
  HMC_NAME(is_neg)
  HMC_NAME(is_contiguous)
  HMC_NAME(is_cuda)
  HMC_NAME(is_cpu)
  HMC_NAME(get_device)
  HMC_NAME(numel)
  HMC_NAME(element_size)
  HMC_NAME(data_ptr)
#undef HMC_NAME
};
const Names& names() {
  static const auto* all = new Names;
  return *all;
}

// What we use of the module, once it has that: its import may be under way. Needs the GIL.
struct Module {
  py::object module;
  py::object tensor;   // the class
  py::object strided;  // the layout of dense tensors
  py::object currentStream;
  const dlpack::Exchange* exchange = nullptr;  // none before torch 2.10
  DeviceKind cudaKind = DeviceKind::cuda;      // what it calls "cuda"
};

py::object attribute(py::handle object, const char* name) {
  return object ? py::getattr(object, name, py::handle()) : py::object();
}

// Its functions answer in a tenth of the time that the methods of tensors take together.
const dlpack::Exchange* exchangeOf(py::handle tensor) {
  const py::object capsule = attribute(tensor, dlpack::kExchangeAttribute);
  if (!capsule || PyCapsule_IsValid(capsule.ptr(), dlpack::kExchangeName) == 0) return nullptr;
  auto* found = static_cast<const dlpack::Exchange*>(
      PyCapsule_GetPointer(capsule.ptr(), dlpack::kExchangeName));
  return found->major == dlpack::kNewestMajor && found->describe ? found : nullptr;
}

void findTensor(Module& torch) {
  const py::object hip = attribute(attribute(torch.module, "version"), "hip");
  torch.cudaKind = hip && PyObject_IsTrue(hip.ptr()) == 1 ? DeviceKind::hip : DeviceKind::cuda;
  torch.strided = attribute(torch.module, "strided");
  const py::object tensor = attribute(torch.module, "Tensor");
  if (torch.strided && tensor && PyType_Check(tensor.ptr())) torch.tensor = tensor;
  torch.exchange = exchangeOf(torch.tensor);
}

// Kept once torch uses its devices: it does not stop.
void findCurrentStream(Module& torch) {
  const py::object used = attribute(attribute(torch.module, "cuda"), "is_initialized");
  if (!used || !callPython(used).is(py::handle(Py_True))) return;
  torch.currentStream = attribute(attribute(torch.module, "_C"), "_cuda_getCurrentRawStream");
}

// Null when the program has not imported torch.
Module* find() {
  static auto* torch = new Module;
  PyObject* module = PyDict_GetItem(PyImport_GetModuleDict(), names().torch);
  if (!module) return nullptr;
  if (torch->module.ptr() != module) *torch = {py::reinterpret_borrow<py::object>(module)};
  return torch;
}

// What an object answers; null where it raises.
template <class Question>
py::object answer(Question question) {
  auto given = py::reinterpret_steal<py::object>(inPython(question));
  if (given) return given;
  if (!PyErr_ExceptionMatches(PyExc_Exception)) throw py::error_already_set();  // Ctrl-C
  PyErr_Clear();
  return given;
}
py::object read(py::handle object, PyObject* name) {
  return answer([&] { return PyObject_GetAttr(object.ptr(), name); });
}
py::object call(py::handle object, PyObject* method) {
  return answer([&] { return PyObject_CallMethodObjArgs(object.ptr(), method, nullptr); });
}

std::optional<uint64_t> number(const py::object& given) {
  if (!given || !PyLong_Check(given.ptr())) return {};
  const uint64_t value = PyLong_AsUnsignedLongLong(given.ptr());
  if (value != UINT64_MAX || !PyErr_Occurred()) return value;
  PyErr_Clear();  // negative
  return {};
}

std::optional<Device> deviceOf(const Module& torch, py::handle tensor) {
  if (read(tensor, names().is_cuda).is(py::handle(Py_True))) {
    const auto index = number(call(tensor, names().get_device));
    if (index) return Device{torch.cudaKind, static_cast<int>(*index)};
  } else if (read(tensor, names().is_cpu).is(py::handle(Py_True))) {
    return Device{};
  }
  return {};
}

// Does its memory hold its values, one after the other?
bool isDense(const Module& torch, py::handle tensor) {
  const py::handle no(Py_False);
  return read(tensor, names().layout).is(torch.strided) && call(tensor, names().is_conj).is(no) &&
         call(tensor, names().is_neg).is(no) &&
         call(tensor, names().is_contiguous).is(py::handle(Py_True));
}

std::optional<Device> deviceOf(const dlpack::DLDevice& device) {
  switch (device.type) {
    case dlpack::kCpu:
      return Device{};
    case dlpack::kCuda:
      return Device{DeviceKind::cuda, device.id};
    case dlpack::kRocm:
      return Device{DeviceKind::hip, device.id};
    default:
      return {};
  }
}

// Bytes of a tensor whose elements lie one after the other; 0 for any other.
size_t denseSize(const dlpack::DLTensor& tensor) {
  const size_t bits = size_t{tensor.dtype.bits} * tensor.dtype.lanes;
  size_t count = 1;
  for (int32_t i = tensor.ndim - 1; i >= 0; --i) {
    const auto length = static_cast<size_t>(tensor.shape[i]);
    const bool apart = tensor.strides && static_cast<size_t>(tensor.strides[i]) != count;
    if (length != 1 && apart) return 0;
    if (__builtin_mul_overflow(count, length, &count)) return 0;
  }
  size_t size = 0;
  if (bits % 8 != 0 || __builtin_mul_overflow(count, bits / 8, &size)) return 0;
  return size;
}

// Memory may hold the negative or the conjugate of such values, which DLPack does not say.
bool mayBeView(const dlpack::DLDataType& type) {
  return type.code != dlpack::kInt && type.code != dlpack::kUInt && type.code != dlpack::kBool;
}

// The same as describe(), by the functions of torch's that are made for it. Nothing where they do
// not say enough.
std::optional<Tensor> describeQuickly(const dlpack::Exchange& exchange, py::handle object) {
  dlpack::DLTensor tensor{};
  if (exchange.describe(object.ptr(), &tensor) != 0) {
    PyErr_Clear();
    return {};
  }
  const auto device = deviceOf(tensor.device);
  const size_t size = denseSize(tensor);
  if (!device || !tensor.data || size == 0) return {};
  const py::handle no(Py_False);
  if (mayBeView(tensor.dtype) &&
      !(call(object, names().is_conj).is(no) && call(object, names().is_neg).is(no))) {
    return {};
  }
  return Tensor{static_cast<char*>(tensor.data) + tensor.byteOffset, size, *device};
}

}  // namespace

std::optional<Tensor> describe(py::handle object) {
  Module* torch = find();
  if (!torch) return {};
  if (!torch->tensor) findTensor(*torch);
  auto* type = reinterpret_cast<PyTypeObject*>(torch->tensor.ptr());
  if (!type || !PyObject_TypeCheck(object.ptr(), type)) return {};
  if (torch->exchange) {
    if (const auto tensor = describeQuickly(*torch->exchange, object)) return tensor;
  }
  if (!isDense(*torch, object)) return {};
  const auto device = deviceOf(*torch, object);
  const auto count = number(call(object, names().numel));
  const auto itemSize = number(call(object, names().element_size));
  const auto data = number(call(object, names().data_ptr));
  size_t size = 0;
  if (!device || !count || !itemSize || !data || *data == 0) return {};
  if (__builtin_mul_overflow(*count, *itemSize, &size) || size == 0) return {};
  return Tensor{reinterpret_cast<void*>(*data), size, *device};  // NOLINT
}

std::optional<void*> currentStream(const Device& device) {
  constexpr uint64_t kDefaultStream = 1;  // torch calls it 0, which is no stream for us
  const bool isTorchsCuda = device.kind == DeviceKind::cuda || device.kind == DeviceKind::hip;
  Module* torch = isTorchsCuda ? find() : nullptr;
  if (!torch) return {};
  if (!torch->currentStream) findCurrentStream(*torch);
  if (!torch->currentStream) return {};
  std::optional<uint64_t> stream;
  if (void* found = nullptr; torch->exchange && torch->exchange->currentStream) {
    const auto type = device.kind == DeviceKind::hip ? dlpack::kRocm : dlpack::kCuda;
    if (torch->exchange->currentStream(type, device.index, &found) == 0) {
      stream = reinterpret_cast<uint64_t>(found);
    } else {
      PyErr_Clear();
    }
  }
  if (!stream) stream = number(callPython(torch->currentStream, py::int_(device.index)));
  if (!stream) return {};
  return reinterpret_cast<void*>(*stream == 0 ? kDefaultStream : *stream);  // NOLINT
}

}  // namespace hmc::python::torch
