#pragma once

#include <map>
#include <optional>
#include <string>

#include "regions.h"

namespace hmc::python {

// The class behind hmc.Node.
struct NodeOf {
  Handle<Node> node;
  std::optional<std::string> address;
  std::map<std::string, Handle<LocalRegion>> named;  // kept for peers until unregister()
};

using NodeClass = PublicClass<NodeOf>;

// prepared.cc: hmc.Prepared, and the methods of Node that move pairs of memories.
void bindPrepared(pybind11::module_& module);
void bindPairs(NodeClass& node);

}  // namespace hmc::python
