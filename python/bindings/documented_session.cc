#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>

#include "documented.h"
#include "hmc/deadline.h"
#include "without_gil.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

// A Communicator whose failures are exceptions. It also remembers the connections, for callers that
// do not name one. The GIL guards the members; the Communicator needs no lock.
class SessionCore {
 public:
  explicit SessionCore(std::shared_ptr<Communicator> communicator)
      : communicator_(std::move(communicator)) {}

  const std::shared_ptr<Communicator>& communicator() const { return communicator_; }

  template <class Call>
  status_t released(const Call& call) const {
    const auto kept = communicator_;
    ReleasedGil release;
    return call(*kept);
  }

  // Calls with short timeouts, so that Ctrl-C is noticed in between. A call that timed out may be
  // repeated; `late` is what it returns then, besides TIMEOUT.
  template <class Call>
  status_t inShortWaits(Communicator::Timeout timeout, status_t late, const Call& call) const {
    constexpr int kSlice = 200;  // milliseconds
    const Deadline deadline(timeout);
    for (;;) {
      const Communicator::Timeout slice(deadline.leftMs(kSlice));
      const status_t status =
          released([&](Communicator& communicator) { return call(communicator, slice); });
      if ((status != status_t::TIMEOUT && status != late) || deadline.passed()) return status;
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    }
  }

  // The same for a call that needs no repeating; raises its failure.
  template <class Call>
  void run(const Call& call) const {
    checkPeer(released(call));
  }

  // What `conn` says, or the only connection to that ip (and port).
  ConnType typeFor(const std::string& ip, std::optional<uint16_t> port, py::handle conn,
                   ConnType usual) const {
    if (!conn.is_none()) return connArgument(conn);
    std::set<ConnType> types;
    for (auto one = connected_.lower_bound({ip, port.value_or(0)}); one != connected_.end();
         ++one) {
      const auto& [host, number] = one->first;
      if (host != ip || (port && number != *port)) break;
      types.insert(one->second.begin(), one->second.end());
    }
    return types.size() == 1 ? *types.begin() : usual;
  }

  // With ranks where there is a link for tags.
  void connect(py::handle ipOf, py::handle portOf, py::handle conn, py::handle timeoutOf,
               const CtrlLink* link, py::handle peerOf, py::handle selfOf) {
    const std::string ip = textArgument(ipOf, "ip");
    const uint16_t port = portArgument(portOf, "port");
    const ConnType type = connArgument(conn);
    const Communicator::Timeout timeout = timeoutArgument(timeoutOf);
    if (link) {
      const uint32_t peer = rankArgument(peerOf, "peer_id");
      const uint32_t self = rankArgument(selfOf, "self_id");
      run([&](Communicator& c) { return c.connectTo(peer, self, ip, port, *link, type, timeout); });
    } else {
      run([&](Communicator& c) { return c.connectTo(ip, port, type, timeout); });
    }
    connected_[{ip, port}].insert(type);
  }
  void disconnect(const std::string& ip, std::optional<uint16_t> port, ConnType type) {
    for (auto& [key, types] : connected_) {
      if (key.first == ip && (!port || key.second == *port)) types.erase(type);
    }
    check(released([&](Communicator& c) {
      return port ? c.disConnect(ip, *port, type) : c.disConnect(ip, type);
    }));
  }

 private:
  const std::shared_ptr<Communicator> communicator_;
  std::map<std::pair<std::string, uint16_t>, std::set<ConnType>> connected_;
};

std::optional<uint16_t> optionalPort(py::handle port) {
  if (port.is_none()) return std::nullopt;
  return portArgument(port, "port");
}

// The arguments that all one-sided transfers share.
struct OneSided {
  OneSided(const SessionCore& self, py::handle ipArgument, py::handle portOf, py::handle localOf,
           py::handle remoteOf, py::handle sizeOf, py::handle conn)
      : ip(textArgument(ipArgument, "ip")),
        port(portArgument(portOf, "port")),
        local(sizeArgument(localOf, "local_off")),
        remote(sizeArgument(remoteOf, "remote_off")),
        size(sizeArgument(sizeOf, "nbytes")),
        type(self.typeFor(ip, port, conn, ConnType::RDMA)) {}

  // Calls a method of Communicator with them, and with `more` before the type.
  template <auto method, class... More>
  auto call(Communicator& communicator, More... more) const {
    return (communicator.*method)(ip, port, local, remote, size, more..., type);
  }
  template <auto method, class... More>
  void run(const SessionCore& self, More... more) const {
    self.run([&](Communicator& c) { return call<method>(c, more...); });
  }

  const std::string ip;
  const uint16_t port;
  const size_t local;
  const size_t remote;
  const size_t size;
  const ConnType type;
};

template <auto tryMove, auto move>
void sessionMove(const SessionCore& self, py::handle ip, py::handle port, py::handle local,
                 py::handle remote, py::handle size, py::handle conn) {
  const OneSided t(self, ip, port, local, remote, size, conn);
  if (t.size <= kShortCopy && t.call<tryMove>(*self.communicator())) return;
  t.run<move>(self);
}

template <auto start>
uint64_t sessionStart(const SessionCore& self, py::handle ip, py::handle port, py::handle local,
                      py::handle remote, py::handle size, py::handle conn) {
  uint64_t id = 0;
  OneSided(self, ip, port, local, remote, size, conn).run<start>(self, &id);
  return id;
}

template <auto pipeline>
void sessionPipeline(const SessionCore& self, py::handle ip, py::handle port, py::handle local,
                     py::handle remote, py::handle size, py::handle chunkOf, py::handle inflightOf,
                     py::handle conn) {
  const size_t chunk = sizeArgument(chunkOf, "chunk_size");
  const size_t inflight = sizeArgument(inflightOf, "max_inflight");
  OneSided(self, ip, port, local, remote, size, conn).run<pipeline>(self, chunk, inflight);
}

template <auto move>
void moveLegacy(const SessionCore& self, py::handle ipArgument, py::handle offsetOf,
                py::handle sizeOf, py::handle conn, ConnType usual) {
  const std::string ip = textArgument(ipArgument, "ip");
  const size_t offset = sizeArgument(offsetOf, "bias");
  const size_t size = sizeArgument(sizeOf, "size");
  const ConnType type = self.typeFor(ip, std::nullopt, conn, usual);
  self.run([&](Communicator& c) { return (c.*move)(ip, offset, size, type); });
}

void sessionWait(const SessionCore& self, const py::object& ids, py::handle timeoutOf) {
  Communicator::Timeout timeout = timeoutArgument(timeoutOf);
  if (timeout.count() < 0) timeout = self.communicator()->usualTransferTimeout();
  std::vector<uint64_t> all;
  if (PyIndex_Check(ids.ptr())) {
    all.push_back(numberArgument(ids, "wr_id", UINT64_MAX));
  } else {
    for (const auto& id : ids) all.push_back(numberArgument(id, "wr_id", UINT64_MAX));
  }
  // Ids that are done drop out, so that none is waited for twice.
  Status why;
  for (uint64_t id : all) {
    const status_t status = self.inShortWaits(
        timeout, status_t::TIMEOUT,
        [&](Communicator& c, Communicator::Timeout slice) { return c.wait(id, slice); });
    if (why.ok() && status != status_t::SUCCESS) why = lastStatus();
  }
  check(why);
}

void sessionSend(const SessionCore& self, py::handle peerOf, py::handle tagOf) {
  const uint32_t peer = rankArgument(peerOf, "peer");
  const uint64_t tag = numberArgument(tagOf, "tag", UINT64_MAX);
  self.run([&](Communicator& c) { return c.ctrlSend(peer, tag); });
}

uint64_t sessionReceive(const SessionCore& self, py::handle peerOf, py::handle timeoutOf) {
  const uint32_t peer = rankArgument(peerOf, "peer");
  Communicator::Timeout timeout = timeoutArgument(timeoutOf);
  if (timeout.count() < 0) timeout = self.communicator()->usualReceiveTimeout();
  uint64_t tag = 0;
  checkPeer(self.inShortWaits(
      timeout, status_t::NOT_FOUND,
      [&](Communicator& c, Communicator::Timeout slice) { return c.ctrlRecv(peer, &tag, slice); }));
  return tag;
}

void sendData(const SessionCore& self, py::handle ipOf, py::handle portOf, uintptr_t from,
              size_t size, MemoryType kind, ConnType type) {
  const std::string ip = textArgument(ipOf, "ip");
  const auto port = optionalPort(portOf);
  void* data = reinterpret_cast<void*>(from);
  self.run([&](Communicator& c) {
    return port ? c.sendDataTo(ip, *port, data, size, kind, type)
                : c.sendDataTo(ip, data, size, kind, type);
  });
}

size_t receiveData(const SessionCore& self, py::handle ipOf, py::handle portOf, uintptr_t into,
                   size_t size, MemoryType kind, ConnType type) {
  const std::string ip = textArgument(ipOf, "ip");
  const auto port = optionalPort(portOf);
  void* data = reinterpret_cast<void*>(into);
  size_t count = 0;
  self.run([&](Communicator& c) {
    return port ? c.recvDataFrom(ip, *port, data, size, kind, &count, type)
                : c.recvDataFrom(ip, data, size, kind, &count, type);
  });
  return count;
}

constexpr const char* kPutRemote = R"(put_remote(ip, port, local_off, remote_off, nbytes, conn=None)

Copy nbytes of our buffer at local_off into the peer's at remote_off; they are visible there when
this returns. The peer is named by its address and data port, or port 0 if it does not listen.
Without conn: the connection to it if there is only one, or ConnType.RDMA.)";

constexpr const char* kGetRemote = R"(get_remote(ip, port, local_off, remote_off, nbytes, conn=None)

Copy nbytes of the peer's buffer at remote_off into ours at local_off. See put_remote().)";

constexpr const char* kPutNb = R"(put_nb(ip, port, local_off, remote_off, nbytes, conn=None) -> int

Start a put_remote() and return an id for wait(). Leave the bytes unchanged until then. The id 0
means that it is already done.)";

constexpr const char* kGetNb = R"(get_nb(ip, port, local_off, remote_off, nbytes, conn=None) -> int

Start a get_remote() and return an id for wait(). The id 0 means that it is already done.)";

constexpr const char* kWait = R"(wait(wr_id, timeout=None)

Wait for a transfer that put_nb() or get_nb() started, or for all of a list, then raise the first
failure. After `timeout` seconds (30 unless HMC_TIMEOUT_MS says otherwise) the ids stay valid: wait
again.)";

constexpr const char* kCtrlSend = R"(ctrl_send(peer, tag)

Send a number to the peer of that rank. It arrives after the data of every put before it.)";

constexpr const char* kCtrlRecv = R"(ctrl_recv(peer, timeout=None) -> int

Wait for the next tag from the peer of that rank, and for the peer itself, up to `timeout` seconds
(600 unless HMC_RECV_TIMEOUT_MS says otherwise).)";

constexpr const char* kPutPipeline =
    R"(put_pipeline(ip, port, local_off, remote_off, nbytes, chunk_size=0, max_inflight=64, conn=None)

put_remote() in chunks of chunk_size bytes (0: 4 MiB), max_inflight of them under way at a time.)";

constexpr const char* kGetPipeline =
    R"(get_pipeline(ip, port, local_off, remote_off, nbytes, chunk_size=0, max_inflight=64, conn=None)

get_remote() in chunks of chunk_size bytes (0: 4 MiB), max_inflight of them under way at a time.)";

}  // namespace

void bindSession(py::module_& module) {
  module.def("check", [](status_t status) { checkPeer(status); });
  module.def("port_argument", [](py::handle port) { return portArgument(port, "the port"); });
  using C = Communicator;
  const py::arg nbytes("nbytes");
  const py::arg_v chunk = py::arg("chunk_size") = 0;
  const py::arg_v inflight = py::arg("max_inflight") = 64;
  const py::arg_v conn = py::arg("conn") = py::none();
  const py::arg_v timeout = py::arg("timeout") = py::none();
  py::class_<SessionCore> session(module, "SessionCore", "What hmc.Session is built on.");
  session.def(py::init<std::shared_ptr<Communicator>>(), py::arg("comm"));
  session.def_property_readonly("comm", &SessionCore::communicator,
                                "The Communicator underneath, whose methods return a Status.");
  defOneSided(session, "put_remote", sessionMove<&C::tryPut, &C::put>, nbytes, conn, kPutRemote);
  defOneSided(session, "get_remote", sessionMove<&C::tryGet, &C::get>, nbytes, conn, kGetRemote);
  defOneSided(session, "put_nb", sessionStart<&C::putNB>, nbytes, conn, kPutNb);
  defOneSided(session, "get_nb", sessionStart<&C::getNB>, nbytes, conn, kGetNb);
  defOneSided(session, "put_pipeline", sessionPipeline<&C::putPipeline>, nbytes, chunk, inflight,
              conn, kPutPipeline);
  defOneSided(session, "get_pipeline", sessionPipeline<&C::getPipeline>, nbytes, chunk, inflight,
              conn, kGetPipeline);
  session.def("wait", &sessionWait, py::arg("wr_id"), timeout, kWait)
      .def("ctrl_send", &sessionSend, py::arg("peer"), py::arg("tag"), kCtrlSend)
      .def("ctrl_recv", &sessionReceive, py::arg("peer"), timeout, kCtrlRecv)
      .def(
          "close",
          [](const SessionCore& self) {
            self.released([](Communicator& c) {
              c.close();
              return status_t::SUCCESS;
            });
          },
          "close()\n\nClose every connection. Calls of this session that are waiting fail.")
      .def("_write_to", moveLegacy<&C::writeTo>)
      .def("_read_from", moveLegacy<&C::readFrom>)
      .def("_connect", &SessionCore::connect, py::arg("ip"), py::arg("port"), py::arg("conn"),
           py::arg("timeout"), py::arg("link") = nullptr, py::arg("peer_id") = py::none(),
           py::arg("self_id") = py::none())
      .def("_pick_port",
           [](const SessionCore& self, const std::string& ip) {
             uint16_t port = 0;
             self.run([&](Communicator& c) { return c.initServer(ip, &port); });
             return port;
           })
      .def("_disconnect",
           [](SessionCore& self, py::handle ip, py::handle port, py::handle type) {
             self.disconnect(textArgument(ip, "ip"), optionalPort(port), connArgument(type));
           })
      .def("_type_for",
           [](const SessionCore& self, py::handle ip, py::handle port, py::handle type,
              ConnType usual) {
             return self.typeFor(textArgument(ip, "ip"), optionalPort(port), type, usual);
           })
      .def("_send_data", sendData)
      .def("_receive_data", receiveData);
}

}  // namespace hmc::python
