#include <pybind11/stl.h>

#include "errors.h"
#include "regions.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

Remote open(const PeerOf& self, const std::string& name, double timeout) {
  const Timeout time = timeoutFrom(timeout);
  const Peer& peer = *self.peer;
  auto opened = withoutGil([&] { return peer.open(name, time); });
  Handle<RemoteRegion> memory(check(std::move(opened)));
  const size_t size = memory->size();
  return {self.node, std::move(memory), name, {0, size}};
}

void notify(const PeerOf& self, const py::buffer& data, double timeout) {
  const Timeout time = timeoutFrom(timeout);
  const auto bytes = py::cast<std::string>(py::bytes(py::memoryview(data).attr("tobytes")()));
  const Peer& peer = *self.peer;
  check(withoutGil([&] { return peer.notify(bytes, time); }));
}

std::vector<PathReport> explain(const PeerOf& self, const py::object& device, size_t nbytes) {
  const Peer& peer = *self.peer;
  if (device.is_none()) return withoutGil([&] { return peer.explain(); });
  return withoutGil([&, where = deviceFrom(device)] { return peer.explain(where, nbytes); });
}

void bindPathReport(py::module_& module) {
  py::class_<PathReport> report(module, "PathReport",
                                "Whether a transport is used, and why or why not.");
  report.attr("__module__") = "hmc";
  report.def_readonly("transport", &PathReport::transport, "Its name.")
      .def_readonly("usable", &PathReport::usable, "Whether it works here, or with this peer.")
      .def_readonly("preferred", &PathReport::preferred, "Whether puts use it.")
      .def_readonly("reason", &PathReport::reason, "Why it is usable, or why it is not.")
      .def_readonly("used", &PathReport::used,
                    "How it has reached the peer's regions so far: \"mapped\".")
      .def_readonly("predicted_ns", &PathReport::predictedNs,
                    "The typical time of one put of the size asked about, or None.")
      .def_readonly("measured_ns", &PathReport::measuredNs,
                    "The time that `hmc bench` measured for it on this host, or None.")
      .def("__repr__", [](const PathReport& self) {
        return "<hmc.PathReport " + self.transport + (self.usable ? ": " : " unusable: ") +
               self.reason + ">";
      });
}

void bindPeerFacts(py::module_& module) {
  py::class_<PeerFacts> facts(module, "PeerFacts", "What Peer.probe returns.");
  facts.attr("__module__") = "hmc";
  facts.def_readonly("version", &PeerFacts::version, "The version of HMC at the peer.")
      .def_property_readonly(
          "clock_offset", [](const PeerFacts& self) { return seconds(self.clockOffset); },
          "The peer's wall clock minus ours, in seconds.")
      .def_property_readonly(
          "round_trip", [](const PeerFacts& self) { return seconds(self.roundTrip); },
          "The round-trip time on the control channel in seconds, the best of a few.")
      .def_readonly("away", &PeerFacts::away, "Whether it is on another host.");
}

}  // namespace

void bindPeer(py::module_& module) {
  bindPathReport(module);
  bindPeerFacts(module);

  py::class_<PeerOf> peer(module, "Peer", R"(Another Node that this one is connected to.

Made by Node.connect, Node.peer and Node.peers. Two are equal if they are the same
Node; a Node that restarts is another peer.)");
  peer.attr("__module__") = "hmc";
  peer.def_property_readonly(
          "name", [](const PeerOf& self) { return self.peer->name(); }, "Its Node's name.")
      .def_property_readonly(
          "id", [](const PeerOf& self) { return self.peer->id(); },
          "Random, and new for every Node.")
      .def_property_readonly(
          "connected", [](const PeerOf& self) { return self.peer->status().ok(); },
          "False once it is gone.")
      .def("open", open, py::arg("name"), py::arg("timeout") = 30,
           R"(open(self, name, timeout=30)
--

The RemoteRegion that the peer registered under that name.)")
      .def("notify", notify, py::arg("data"), py::arg("timeout") = 30,
           R"(notify(self, data, timeout=30)
--

Send bytes to the peer's Node.next_note and Node.notifications.

They arrive after the data of every put to the peer that started before.)")
      .def("explain", explain, py::arg("device") = py::none(), py::arg("nbytes") = 8,
           R"(explain(self, device=None, nbytes=8)
--

A PathReport for every transport, best first: whether it is used for this peer, and why.

With a device such as "cpu", for our memory on that device, with the times of a put
of `nbytes` bytes.)")
      .def(
          "probe",
          [](const PeerOf& self, double timeout) {
            const Timeout time = timeoutFrom(timeout);
            return check(withoutGil([&, &from = *self.peer] { return from.probe(time); }));
          },
          py::arg("timeout") = 30, R"(probe(self, timeout=30)
--

Ask the peer for its version, its clock and the round trip to it: PeerFacts.)")
      .def(
          "close", [](const PeerOf& self) { withoutGil([&to = *self.peer] { to.close(); }); },
          "close(self)\n--\n\nEnd the connection. What is under way fails with PeerLost.")
      .def(
          "__eq__",
          [](const PeerOf& self, py::handle other) -> py::object {
            if (!py::isinstance<PeerOf>(other))
              return py::reinterpret_borrow<py::object>(Py_NotImplemented);
            return py::bool_(self.peer->id() == py::cast<const PeerOf&>(other).peer->id());
          },
          py::arg("other"))
      .def("__hash__", [](const PeerOf& self) { return std::hash<std::string>()(self.peer->id()); })
      .def("__repr__", [](const PeerOf& self) {
        return "<hmc.Peer \"" + self.peer->name() + "\"" +
               (self.peer->status().ok() ? "" : ", gone") + ">";
      });
}

}  // namespace hmc::python
