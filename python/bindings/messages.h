#pragma once

#include <string>

#include "regions.h"

// What peers tell a Node: hmc.Note, hmc.Call and hmc.PeerEvent.
namespace hmc::python {

struct NoteOf {
  PeerOf peer;
  std::string bytes;
};

struct CallOf {
  PeerOf peer;
  Handle<Call> call;
};

struct PeerEventOf {
  PeerOf peer;
  PeerEvent::Kind kind;
  std::string reason;
};

void bindMessages(pybind11::module_& module);

}  // namespace hmc::python
