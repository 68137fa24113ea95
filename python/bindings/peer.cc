#include <pybind11/stl.h>

#include "errors.h"
#include "interruptible.h"
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
  auto opened =
      interruptible([kept = self.peer, &peer, name, time] { return peer.open(name, time); });
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
  PublicClass<PathReport> report(module, "PathReport",
                                 "Whether a transport is used, and why or why not.");
  report.property("transport", "Its name.", &PathReport::transport)
      .property("usable", "Whether it works here, or with this peer.", &PathReport::usable)
      .property("preferred", "Whether puts use it.", &PathReport::preferred)
      .property("reason", "Why it is usable, or why it is not.", &PathReport::reason)
      .property("used", "How it has reached the peer's regions so far: \"mapped\".",
                &PathReport::used)
      .property("predicted_ns", "The typical time of one put of the size asked about, or None.",
                &PathReport::predictedNs)
      .property("measured_ns", "The time that `hmc bench` measured for it on this host, or None.",
                &PathReport::measuredNs)
      .def("__repr__", [](const PathReport& self) {
        return "<hmc.PathReport " + self.transport + (self.usable ? ": " : " unusable: ") +
               self.reason + ">";
      });
}

void bindCounts(py::module_& module) {
  PublicClass<TransportCounts> counts(module, "TransportCounts",
                                      "What one transport of a Node did so far.");
  counts.property("transport", "Its name.", &TransportCounts::transport)
      .property("operations", "Pieces that it accepted, or that were copied into mapped memory.",
                &TransportCounts::operations)
      .property("bytes", "The bytes of those.", &TransportCounts::bytes)
      .property("retries", "Operations that it had to start again.", &TransportCounts::retries)
      .property("stalls", "How often it took fewer operations than it was offered.",
                &TransportCounts::stalls)
      .property("altered", "Pieces that did not fit their checksum when they came here.",
                &TransportCounts::altered);
}

void bindPeerFacts(py::module_& module) {
  PublicClass<PeerFacts> facts(module, "PeerFacts", "What Peer.probe returns.");
  facts.property("version", "The version of HMC at the peer.", &PeerFacts::version)
      .property("clock_offset", "The peer's wall clock minus ours, in seconds.",
                [](const PeerFacts& self) { return seconds(self.clockOffset); })
      .property("round_trip",
                "The round-trip time on the control channel in seconds, the best of a few.",
                [](const PeerFacts& self) { return seconds(self.roundTrip); })
      .property("away", "Whether it is on another host.", &PeerFacts::away);
}

}  // namespace

void bindPeer(py::module_& module) {
  bindPathReport(module);
  bindCounts(module);
  bindPeerFacts(module);

  PublicClass<PeerOf> peer(module, "Peer", R"(Another Node that this one is connected to.

Made by Node.connect, Node.peer and Node.peers. Two are equal if they are the same
Node; a Node that restarts is another peer.)");
  peer.property("name", "Its Node's name.", [](const PeerOf& self) { return self.peer->name(); })
      .property("id", "Random, and new for every Node.",
                [](const PeerOf& self) { return self.peer->id(); })
      .property("connected", "False once it is gone.",
                [](const PeerOf& self) { return self.peer->status().ok(); })
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
