#pragma once

#include <string>

#include "regions.h"

// What array a region is: its dtype and shape, and how array libraries see it.
namespace hmc::python {

using TypeHandle = std::shared_ptr<const ArrayType>;

// What hmc.views says of an array-like object; null where it says nothing.
TypeHandle typeOfObject(pybind11::handle object);
// The same of dtype= and shape=, and the bytes that such an array has.
struct WantedArray {
  TypeHandle type;
  size_t size;
};
WantedArray arrayFrom(pybind11::handle dtype, pybind11::handle shape, pybind11::handle nbytes);
// What its owner said of a peer's region that was opened by name; asks once.
const TypeHandle& typeOf(Remote& remote);

// Null means plain bytes: dtype "uint8" and a shape of (nbytes,).
pybind11::str dtypeOf(const TypeHandle& type);
pybind11::tuple shapeOf(const TypeHandle& type, size_t nbytes);

// Memory as an array library is to see it.
struct ArrayView {
  pybind11::object owner;
  char* data;
  size_t size;
  Device device;
  bool readOnly;
  TypeHandle type;
  std::string title;
};
// dtype, shape, numpy(), __dlpack__ and __dlpack_device__, which are the same for both kinds of
// region.
void bindType(PublicClass<Region>& region);
void bindType(PublicClass<Remote>& remote);

// dlpack_export.cc: what __dlpack__ and __dlpack_device__ return.
pybind11::object exportDlpack(ArrayView view, pybind11::handle maxVersion, pybind11::handle device,
                              pybind11::handle copy);
pybind11::tuple dlpackDevice(const ArrayView& view);
// Bytes of one element, 0 for a dtype that DLPack does not know.
size_t itemSizeOf(const std::string& dtype);

}  // namespace hmc::python
