#include <pybind11/stl.h>

#include <future>

#include "errors.h"
#include "handle.h"
#include "hmc/store.h"
#include "pool.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

Handle<Gathering> begin(const std::string& store, std::optional<uint32_t> rank, uint32_t size,
                        const std::string& name) {
  GatheringOptions options;
  options.store = store;
  options.rank = rank;
  options.size = size;
  options.name = name;
  return Handle<Gathering>(check(Gathering::begin(options)));
}

// On a thread of its own and in one call: its parts take several round trips, which short waits
// would begin again and again. This thread looks for signals meanwhile.
py::list wait(const Handle<Gathering>& self, const std::string& mine, py::handle timeout) {
  constexpr std::chrono::milliseconds kLook{100};
  const Timeout time = timeoutFrom(timeout);
  Gathering& gathering = *self;
  auto waiting = std::async(std::launch::async, [&] { return gathering.wait(mine, time); });
  while (withoutGil([&] { return waiting.wait_for(kLook); }) != std::future_status::ready) {
    if (PyErr_CheckSignals() == 0) continue;
    gathering.cancel();
    withoutGil([&] { return waiting.wait(), 0; });
    throw py::error_already_set();
  }
  py::list everyone;
  for (const auto& one : check(waiting.get())) everyone.append(py::bytes(one));
  return everyone;
}

}  // namespace

void bindGathering(py::module_& module) {
  using Type = Handle<Gathering>;
  py::class_<Type> gathering(module, "Gathering", R"(Processes that meet at a store once.

What is not named is what the launcher says: hmc pool run, torchrun, mpirun, srun.)");
  gathering
      .def(py::init(&begin), py::arg("store") = "", py::arg("rank") = py::none(),
           py::arg("size") = 0, py::arg("name") = "default",
           "__init__(self, store='', rank=None, size=0, name='default')\n--\n\n")
      .def_property_readonly(
          "rank", [](const Type& self) { return self->rank(); }, "Our own.")
      .def_property_readonly(
          "size", [](const Type& self) { return self->size(); }, "How many there are.")
      .def_property_readonly(
          "host", [](const Type& self) { return check(self->host()); },
          "The address from which this host reaches the store.")
      .def("wait", wait, py::arg("mine"), py::arg("timeout") = 30,
           "wait(self, mine, timeout=30)\n--\n\nTell all ranks `mine`; return what each tells, "
           "by rank.");
}

}  // namespace hmc::python
