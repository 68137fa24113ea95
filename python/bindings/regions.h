#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "arguments.h"
#include "handle.h"
#include "hmc/node.h"

namespace hmc::python {

// The classes behind hmc.Region and hmc.RemoteRegion: a range of memory, which slices share. The
// Node is the first member, so that it is destroyed last.

struct Region {
  Handle<Node> node;
  Handle<LocalRegion> memory;
  Range range;
  Access access = Access::readWrite;
  bool readOnly = false;                  // we may not write it
  std::shared_ptr<const ArrayType> type;  // null for bytes
};

struct Remote {
  Handle<Node> node;
  Handle<Peer> peer;
  Handle<RemoteRegion> memory;
  std::string name;
  Range range;
  bool typeKnown = false;  // what its owner says of it (typeOf)
  std::shared_ptr<const ArrayType> type;
};
// The parts of both are bytes. What else is sliced has no type.
template <class T>
void forgetType(T& /*slice*/) {}
inline void forgetType(Region& region) {
  region.type.reset();
}
inline void forgetType(Remote& remote) {
  remote.typeKnown = true;
  remote.type.reset();
}

// The class behind hmc.Peer.
struct PeerOf {
  Handle<Node> node;
  Handle<Peer> peer;
};

// What Region.grant and Grant.narrow take.
struct Limits {
  std::optional<std::string> access;
  std::optional<double> lifetime;
  std::optional<PeerOf> peer;
};
GrantOptions optionsFrom(const Limits& limits);
// Of the bytes of one.
Grant grantFrom(const pybind11::object& bytes);

// Its name in errors.
std::string title(const Region& region);
std::string title(const Remote& remote);

// A class of the package. Its properties come before its methods, which pybind11 adds.
template <class T>
class PublicClass : public pybind11::class_<T> {
 public:
  template <class... More>
  PublicClass(pybind11::module_& module, const char* name, const More&... more)
      : pybind11::class_<T>(module, name, more...) {
    this->attr("__module__") = "hmc";
  }
  template <class Get>
  PublicClass& property(const char* name, const char* doc, const Get& get) {
    if constexpr (std::is_member_object_pointer_v<Get>)
      this->def_readonly(name, get, doc);
    else
      this->def_property_readonly(name, get, doc);
    return *this;
  }
};

// What both have in Python: a length, and slices.
template <class T>
void bindRange(PublicClass<T>& type) {
  type.property("nbytes", "Its length in bytes.", [](const T& self) { return self.range.size; })
      .def("__len__", [](const T& self) { return self.range.size; })
      .def(
          "__getitem__",
          [](const T& self, pybind11::handle index) {
            const Range part = sliceFrom(index, self.range.size, title(self));
            T slice = self;
            slice.range = {self.range.offset + part.offset, part.size};
            forgetType(slice);
            return slice;
          },
          pybind11::arg("index"),
          "__getitem__(self, index)\n--\n\nThe bytes of a slice such as [a:b].");
}

// Memory of any array-like object, made reachable.
Region registerObject(const Handle<Node>& node, pybind11::handle object, const std::string& name,
                      Access access);

// The bytes at an address as a memoryview, which keeps their owner alive.
pybind11::memoryview viewOf(pybind11::object owner, void* data, size_t size, bool readOnly);

// A function of hmc.arrays.
pybind11::object inArrays(const char* function);

// The __cuda_array_interface__ of some bytes.
pybind11::dict cudaArray(void* data, size_t size, bool readOnly);

// The stream that a transfer of the region is ordered with: the one that the caller named, or
// torch's current one. Null for none.
void* streamFor(const Region& region, pybind11::handle named);

// Memory of the host that is one piece, found without a question to hmc.arrays.
struct HostBytes {
  pybind11::object owner;  // keeps it alive
  char* data;
  size_t size;  // not 0
  bool readOnly;
};
// Of bytes, of anything else with the buffer protocol, or of a torch tensor.
std::optional<HostBytes> hostBytesOf(pybind11::handle object);

// The local side of a transfer: a Region, or anything else, which is registered for this transfer
// when that is needed.
class LocalSide {
 public:
  // With `writes`, it will be written. `stream` is what the caller named, None or null for nothing.
  LocalSide(const Handle<Node>& node, pybind11::handle object, pybind11::handle stream,
            bool writes);
  LocalSide(const LocalSide&) = delete;
  LocalSide& operator=(const LocalSide&) = delete;

  size_t size() const { return bytes_ ? bytes_->size : region_->range.size; }
  // Null when it is registered already.
  const HostBytes* unregistered() const { return bytes_ ? &*bytes_ : nullptr; }
  const Region& operator*() {
    if (!region_) registerBytes();
    return *region_;
  }
  const Region* operator->() { return &**this; }
  // The stream that the transfer is ordered with; null: none.
  void* stream() const { return stream_; }

 private:
  void registerBytes();

  const Handle<Node>& node_;
  Access access_;
  const Region* region_ = nullptr;  // the caller's object, or `made_`
  std::optional<Region> made_;
  std::optional<HostBytes> bytes_;  // of an object that is not registered
  void* stream_ = nullptr;
};

void bindGrant(pybind11::module_& module);
void bindArrays(pybind11::module_& module);
void bindRegion(pybind11::module_& module);
void bindRemote(pybind11::module_& module);
void bindTransfer(pybind11::module_& module);
void bindPeer(pybind11::module_& module);
void bindNode(pybind11::module_& module);
void bindBaselines(pybind11::module_& module);

}  // namespace hmc::python
