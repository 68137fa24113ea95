#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string>

#include "arguments.h"
#include "handle.h"
#include "hmc/node.h"

namespace hmc::python {

// The classes behind hmc.Region and hmc.RemoteRegion: a range of memory, in which slices share the
// memory. The Node goes after what it made.

struct Region {
  Handle<Node> node;
  Handle<LocalRegion> memory;
  Range range;
  Access access = Access::readWrite;
  bool readOnly = false;  // by ourselves
};

struct Remote {
  Handle<Node> node;
  Handle<RemoteRegion> memory;
  std::string name;
  Range range;
};

// Memory of any array-like object, made reachable.
Region registerObject(const Handle<Node>& node, pybind11::handle object, const std::string& name,
                      Access access);

// The local side of a transfer: a Region as it is, anything else registered for this one transfer.
class LocalSide {
 public:
  // With `writes`, it will be written.
  LocalSide(const Handle<Node>& node, pybind11::handle object, bool writes);
  LocalSide(const LocalSide&) = delete;
  LocalSide& operator=(const LocalSide&) = delete;

  const Region& operator*() const { return *region_; }
  const Region* operator->() const { return region_; }

 private:
  const Region* region_ = nullptr;  // the caller's object, or `made_`
  std::optional<Region> made_;
};

void bindRegion(pybind11::module_& module);
void bindRemote(pybind11::module_& module);
void bindTransfer(pybind11::module_& module);
void bindPeer(pybind11::module_& module);
void bindNode(pybind11::module_& module);
void bindBaselines(pybind11::module_& module);

}  // namespace hmc::python
