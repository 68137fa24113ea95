#include <pybind11/stl.h>

#include "errors.h"
#include "event_loop.h"
#include "interruptible.h"
#include "region_type.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

// By a name or a Grant.
template <class What>
Remote openAs(const PeerOf& self, const What& what, std::string name, py::handle timeout) {
  const Timeout time = timeoutFrom(timeout);
  const Peer& peer = *self.peer;
  auto opened =
      interruptible([kept = self.peer, &peer, what, time] { return peer.open(what, time); });
  Handle<RemoteRegion> memory(check(std::move(opened)));
  const size_t size = memory->size();
  const bool granted = !std::is_same_v<What, std::string>;  // which says nothing of the type
  return {self.node, self.peer, std::move(memory), std::move(name), {0, size}, granted, nullptr};
}

Remote open(const PeerOf& self, const py::object& what, py::handle timeout) {
  if (py::isinstance<py::str>(what)) {
    const auto name = py::cast<std::string>(what);
    return openAs(self, name, name, timeout);
  }
  const bool made = py::isinstance<Grant>(what);
  if (!made && PyObject_CheckBuffer(what.ptr()) == 0) {
    throw py::type_error("name is " + py::cast<std::string>(py::repr(what)) +
                         ": pass a region's name, or a Grant or its bytes");
  }
  const Grant grant = made ? py::cast<const Grant&>(what) : grantFrom(what);
  return openAs(self, grant, py::cast<std::string>(py::cast(grant).attr("name")), timeout);
}

void notify(const PeerOf& self, const py::buffer& data, py::handle timeout) {
  const Timeout time = timeoutFrom(timeout);
  const std::string bytes = bytesFrom(data);
  const Peer& peer = *self.peer;
  check(withoutGil([&] { return peer.notify(bytes, time); }));
}

py::bytes call(const PeerOf& self, const std::string& name, const py::buffer& data,
               py::handle timeout) {
  const Timeout time = timeoutFrom(timeout);
  const std::string bytes = bytesFrom(data);
  return check(interruptible(
      [kept = self.peer, name, bytes, time] { return (*kept).call(name, bytes, time); }));
}

std::vector<PathReport> explain(const PeerOf& self, const py::object& device, size_t nbytes) {
  const Peer& peer = *self.peer;
  if (device.is_none()) return withoutGil([&] { return peer.explain(); });
  return withoutGil([&, where = deviceFrom(device)] { return peer.explain(where, nbytes); });
}

std::vector<RegionInfo> regions(const PeerOf& self, py::handle timeout) {
  const Timeout time = timeoutFrom(timeout);
  const Peer& peer = *self.peer;
  return check(interruptible([kept = self.peer, &peer, time] { return peer.regions(time); }));
}

void bindRegionInfo(py::module_& module) {
  auto typeOfInfo = [](const RegionInfo& info) {
    return info.type.dtype.empty() ? nullptr : std::make_shared<const ArrayType>(info.type);
  };
  PublicClass<RegionInfo> info(module, "RegionInfo", "A region of a peer's: Peer.regions.");
  info.property("name", "What Peer.open takes.", &RegionInfo::name)
      .property("nbytes", "Its length in bytes.", &RegionInfo::size)
      .property("device", "Where it lies at the peer: \"cpu\", \"cuda:0\".",
                [](const RegionInfo& self) { return self.device.toString(); })
      .property("access", "What we may do: \"r\" or \"rw\".",
                [](const RegionInfo& self) { return accessWord(self.access); })
      .property("dtype", "Of the array that it is: \"float32\"; \"uint8\" for bytes.",
                [=](const RegionInfo& self) { return dtypeOf(typeOfInfo(self)); })
      .property("shape", "Of that array; (nbytes,) for bytes.",
                [=](const RegionInfo& self) { return shapeOf(typeOfInfo(self), self.size); })
      .def("__repr__", [=](const RegionInfo& self) {
        return "<hmc.RegionInfo \"" + self.name +
               "\": " + py::cast<std::string>(dtypeOf(typeOfInfo(self))) + " " +
               py::cast<std::string>(py::repr(shapeOf(typeOfInfo(self), self.size))) + " on " +
               self.device.toString() + ">";
      });
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
      .property("extrapolated_ns",
                "What the sizes that were measured let expect for one beyond them, or None.",
                &PathReport::extrapolatedNs)
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
  bindRegionInfo(module);
  bindCounts(module);
  bindPeerFacts(module);

  PublicClass<PeerOf> peer(module, "Peer", R"(Another Node that this one is connected to.

Made by Node.connect, Node.peer and Node.peers. Two are equal if they are the same
Node; a Node that restarts is another peer.)");
  peer.property("name", "Its Node's name.", [](const PeerOf& self) { return self.peer->name(); })
      .property("id", "Random, and new for every Node.",
                [](const PeerOf& self) { return py::bytes(self.peer->id()).attr("hex")(); })
      .property("connected", "False once it is gone.",
                [](const PeerOf& self) { return self.peer->status().ok(); })
      .def("open", open, py::arg("name"), py::arg("timeout") = 30,
           R"(open(self, name, timeout=30)
--

The RemoteRegion that the peer registered under that name.

Or, with a Grant or its bytes, the part of a region that it is for.)")
      .def(
          "open_async",
          [](const py::object& self, py::handle name, py::handle timeout) {
            return inThread(self, "open", name, timeout);
          },
          py::arg("name"), py::arg("timeout") = 30,
          "open_async(self, name, timeout=30)\n--\n\nopen() for `await`.")
      .def("regions", regions, py::arg("timeout") = 30, R"(regions(self, timeout=30)
--

What the peer has registered under names: a RegionInfo for each.)")
      .def(
          "regions_async",
          [](const py::object& self, py::handle timeout) {
            return inThread(self, "regions", timeout);
          },
          py::arg("timeout") = 30, "regions_async(self, timeout=30)\n--\n\nregions() for `await`.")
      .def("notify", notify, py::arg("data"), py::arg("timeout") = 30,
           R"(notify(self, data, timeout=30)
--

Send bytes to the peer's Node.next_note and Node.notifications.

They arrive after the data of every put to the peer that started before.)")
      .def(
          "notify_async",
          [](const py::object& self, py::handle data, py::handle timeout) {
            return inThread(self, "notify", data, timeout);
          },
          py::arg("data"), py::arg("timeout") = 30,
          "notify_async(self, data, timeout=30)\n--\n\nnotify() for `await`.")
      .def("call", call, py::arg("name"), py::arg("data") = py::bytes(), py::arg("timeout") = 30,
           R"(call(self, name, data=b'', timeout=30)
--

Call what the peer serves under that name (Node.serve); return its answer, as bytes.

The data of every put to the peer that was done before is there then. 16 MiB is the
most, each way.)")
      .def(
          "call_async",
          [](const py::object& self, py::handle name, py::handle data, py::handle timeout) {
            return inThread(self, "call", name, data, timeout);
          },
          py::arg("name"), py::arg("data") = py::bytes(), py::arg("timeout") = 30,
          "call_async(self, name, data=b'', timeout=30)\n--\n\ncall() for `await`.")
      .def("explain", explain, py::arg("device") = py::none(), py::arg("nbytes") = 8,
           R"(explain(self, device=None, nbytes=8)
--

A PathReport for every transport, best first: whether it is used for this peer, and why.

With a device such as "cpu", for our memory on that device, with the times of a put
of `nbytes` bytes.)")
      .def(
          "probe",
          [](const PeerOf& self, py::handle timeout) {
            const Timeout time = timeoutFrom(timeout);
            return check(withoutGil([&, &from = *self.peer] { return from.probe(time); }));
          },
          py::arg("timeout") = 30, R"(probe(self, timeout=30)
--

Ask the peer for its version, its clock and the round trip to it: PeerFacts.)")
      .def(
          "probe_async",
          [](const py::object& self, py::handle timeout) {
            return inThread(self, "probe", timeout);
          },
          py::arg("timeout") = 30, "probe_async(self, timeout=30)\n--\n\nprobe() for `await`.")
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
