#pragma once

#include <pybind11/pybind11.h>

// What only asyncio needs is in hmc.event_loop, which is imported when it is first used.
namespace hmc::python {

inline pybind11::object eventLoop() {
  return pybind11::module_::import("hmc.event_loop");
}

// A coroutine that calls self.method(arguments...) in a thread of the loop's executor.
template <class... Arguments>
pybind11::object inThread(const pybind11::object& self, const char* method,
                          const Arguments&... arguments) {
  return eventLoop().attr("in_thread")(self.attr(method), arguments...);
}

}  // namespace hmc::python
