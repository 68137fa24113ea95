// region_type.h: what array libraries get from __dlpack__.
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "dlpack.h"
#include "region_type.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

using dlpack::DLDataType;
using dlpack::DLDevice;

struct NumberType {
  const char* name;
  DLDataType type;
};
constexpr std::array<NumberType, 15> kNumberTypes{{{"int8", {dlpack::kInt, 8, 1}},
                                                   {"int16", {dlpack::kInt, 16, 1}},
                                                   {"int32", {dlpack::kInt, 32, 1}},
                                                   {"int64", {dlpack::kInt, 64, 1}},
                                                   {"uint8", {dlpack::kUInt, 8, 1}},
                                                   {"uint16", {dlpack::kUInt, 16, 1}},
                                                   {"uint32", {dlpack::kUInt, 32, 1}},
                                                   {"uint64", {dlpack::kUInt, 64, 1}},
                                                   {"float16", {dlpack::kFloat, 16, 1}},
                                                   {"float32", {dlpack::kFloat, 32, 1}},
                                                   {"float64", {dlpack::kFloat, 64, 1}},
                                                   {"bfloat16", {dlpack::kBfloat, 16, 1}},
                                                   {"complex64", {dlpack::kComplex, 64, 1}},
                                                   {"complex128", {dlpack::kComplex, 128, 1}},
                                                   {"bool", {dlpack::kBool, 8, 1}}}};

const DLDataType* findNumberType(const std::string& dtype) {
  const auto* found = std::find_if(kNumberTypes.begin(), kNumberTypes.end(),
                                   [&](const NumberType& one) { return dtype == one.name; });
  return found == kNumberTypes.end() ? nullptr : &found->type;
}

DLDevice deviceFor(const ArrayView& view) {
  switch (view.device.kind) {
    case DeviceKind::cpu:
      return {dlpack::kCpu, 0};
    case DeviceKind::cuda:
      return {dlpack::kCuda, view.device.index};
    case DeviceKind::hip:
      return {dlpack::kRocm, view.device.index};
    default:
      throw py::buffer_error(view.title + " is on " + view.device.toString() +
                             ", for which DLPack has no number");
  }
}

// What a consumer gets, until it calls the deleter.
template <class Managed>
struct Exported {
  Managed managed{};
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  std::shared_ptr<const void> owner;
};

template <class Managed>
void endExport(Managed* managed) {
  delete static_cast<Exported<Managed>*>(managed->context);
}

template <class Managed>
void dropUnused(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, Managed::kName) == 0) return;  // a consumer has taken it
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, Managed::kName));
  managed->deleter(managed);
}

// Its strides are those of a dense array.
template <class Managed>
py::object capsuleOf(const ArrayView& view, const DLDataType& type) {
  auto made = std::make_unique<Exported<Managed>>();
  if (view.type) {
    made->shape.assign(view.type->shape.begin(), view.type->shape.end());
  } else {
    made->shape = {static_cast<int64_t>(view.size)};
  }
  made->strides.resize(made->shape.size());
  int64_t step = 1;
  for (size_t i = made->shape.size(); i-- > 0; step *= made->shape[i]) made->strides[i] = step;
  made->owner = ownedBy(view.owner);
  Managed& managed = made->managed;
  managed.context = made.get();
  managed.deleter = endExport<Managed>;
  managed.markReadOnly(view.readOnly);
  managed.tensor = {view.data, deviceFor(view),    static_cast<int32_t>(made->shape.size()),
                    type,      made->shape.data(), made->strides.data(),
                    0};
  auto capsule = py::reinterpret_steal<py::object>(
      PyCapsule_New(&managed, Managed::kName, dropUnused<Managed>));
  if (!capsule) throw py::error_already_set();
  made.release();  // NOLINT: the capsule's
  return capsule;
}

// A consumer that knows versions says the newest that it knows.
bool knowsVersions(py::handle newest) {
  return !newest.is_none() && py::cast<std::pair<int, int>>(newest).first >= 1;
}

}  // namespace

size_t itemSizeOf(const std::string& dtype) {
  const DLDataType* type = findNumberType(dtype);
  return type ? type->bits / 8 : 0;
}

py::tuple dlpackDevice(const ArrayView& view) {
  const DLDevice device = deviceFor(view);
  return py::make_tuple(device.type, device.id);
}

py::object exportDlpack(ArrayView view, py::handle maxVersion, py::handle device, py::handle copy) {
  const std::string dtype = view.type ? view.type->dtype : "uint8";
  const DLDataType* type = findNumberType(dtype);
  if (!type)
    throw py::buffer_error(view.title + " is of " + dtype + ", which DLPack does not have");
  if (!device.is_none() && !dlpackDevice(view).equal(device)) {
    throw py::buffer_error(view.title + " is on " + view.device.toString() +
                           " and is not copied elsewhere: leave dl_device out");
  }
  if (!copy.is_none() && py::cast<bool>(copy))
    throw py::buffer_error(view.title +
                           " is shown without a copy: leave copy out, or copy the array");
  if (knowsVersions(maxVersion)) return capsuleOf<dlpack::VersionedManaged>(view, *type);
  if (view.readOnly) {
    throw py::buffer_error(view.title +
                           " is read-only, which this array library cannot be told (DLPack before "
                           "1.0): numpy() shows it, or get it into an array");
  }
  return capsuleOf<dlpack::Managed>(view, *type);
}

}  // namespace hmc::python
