#include <pybind11/stl.h>

#include "documented.h"
#include "without_gil.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

using CtrlId = Communicator::CtrlId;
using Ids = std::vector<uint64_t>;

std::shared_ptr<Communicator> makeCommunicator(const std::shared_ptr<ConnBuffer>& buffer,
                                               size_t channels) {
  std::shared_ptr<Communicator> made;
  {
    ReleasedGil release;
    made = sharedWithoutGil(new Communicator(buffer, channels));
  }
  check(made->status());
  return made;
}

template <class Start>
py::tuple started(const Start& start) {
  uint64_t id = 0;
  status_t status{};
  {
    ReleasedGil release;
    status = start(&id);
  }
  return py::make_tuple(status, id);
}

template <auto method>
py::tuple startNB(Communicator& self, const std::string& ip, uint16_t port, size_t local,
                  size_t remote, size_t size, ConnType type) {
  return started(
      [&](uint64_t* id) { return (self.*method)(ip, port, local, remote, size, id, type); });
}

py::tuple receiveTag(Communicator& self, CtrlId peer) {
  return started([&](uint64_t* tag) { return self.ctrlRecv(peer, tag); });
}

status_t sendDataTo(Communicator& self, const std::string& ip, uint16_t port, py::handle from,
                    size_t size, MemoryType kind, ConnType type) {
  const Place place(from, size, false);
  ReleasedGil release;
  return self.sendDataTo(ip, port, place.pointer(), size, kind, type);
}

py::tuple recvDataFrom(Communicator& self, const std::string& ip, uint16_t port, py::handle into,
                       size_t size, MemoryType kind, ConnType type) {
  const Place place(into, size, true);
  return started([&](uint64_t* count) {
    size_t received = 0;
    const status_t status =
        self.recvDataFrom(ip, port, place.pointer(), size, kind, &received, type);
    *count = received;
    return status;
  });
}

using CommunicatorClass = py::class_<Communicator, std::shared_ptr<Communicator>>;

void bindTransfers(CommunicatorClass& communicator) {
  using C = Communicator;
  const auto released = py::call_guard<ReleasedGil>();
  const py::arg ip("ip");
  const py::arg port("port");
  const py::arg size("size");
  const py::arg bias("ptr_bias");
  const py::arg_v type = py::arg("connType") = static_cast<int>(ConnType::RDMA);
  const py::arg_v chunk = py::arg("chunk_size") = 0;
  const py::arg_v inflight = py::arg("max_inflight") = 64;
  const char* id = "(status, id for wait()).";
  defOneSided(communicator, "put", &C::put, size, type, released);
  defOneSided(communicator, "get", &C::get, size, type, released);
  defOneSided(communicator, "putNB", startNB<&C::putNB>, size, type, id);
  defOneSided(communicator, "getNB", startNB<&C::getNB>, size, type, id);
  defOneSided(communicator, "putPipeline", &C::putPipeline, size, chunk, inflight, type, released);
  defOneSided(communicator, "getPipeline", &C::getPipeline, size, chunk, inflight, type, released);
  communicator
      .def(
          "wait", [](C& self, uint64_t wr) { return self.wait(wr); }, released, py::arg("wr_id"))
      .def(
          "wait", [](C& self, const Ids& ids) { return self.wait(ids); }, released,
          py::arg("wr_ids"))
      .def("sendDataTo", &sendDataTo, ip, port, py::arg("send_buf"), py::arg("buf_size"),
           py::arg("buf_type"), type)
      .def("recvDataFrom", &recvDataFrom, ip, port, py::arg("recv_buf"), py::arg("buf_size"),
           py::arg("buf_type"), type, "(status, received bytes).")
      .def("writeTo", &C::writeTo, released, ip, bias, size, type)
      .def("readFrom", &C::readFrom, released, ip, bias, size, type);
}

void bindConnections(CommunicatorClass& communicator) {
  using C = Communicator;
  using Text = const std::string&;
  const auto released = py::call_guard<ReleasedGil>();
  const py::arg ip("ip");
  const py::arg port("port");
  const py::arg peer("peer_id");
  const py::arg self("self_id");
  const py::arg type("connType");
  const py::arg server("serverType");
  communicator.def("ctrlSend", &C::ctrlSend, released, py::arg("peer"), py::arg("tag"))
      .def("ctrlRecv", &receiveTag, py::arg("peer"), "(status, tag).")
      .def("initCtrlServer", &C::initCtrlServer, released, py::arg("bind_ip"), py::arg("tcp_port"),
           py::arg("uds_path") = "")
      .def("closeCtrl", &C::closeCtrl, released)
      .def("connectCtrl", &C::connectCtrl, released, peer, self, py::arg("link"))
      .def("closeCtrlPeer", &C::closeCtrlPeer, released, peer)
      .def_static("udsPathFor", &C::udsPathFor, py::arg("dir"), peer)
      .def("initServer",
           py::overload_cast<Text, uint16_t, uint16_t, Text, ConnType>(&C::initServer), released,
           py::arg("bind_ip"), py::arg("data_port"), py::arg("ctrl_tcp_port"),
           py::arg("ctrl_uds_path"), server)
      .def("initServer", py::overload_cast<Text, uint16_t, ConnType>(&C::initServer), released, ip,
           port, server)
      .def(
          "connectTo",
          [](C& me, CtrlId to, CtrlId from, Text host, uint16_t number, const CtrlLink& link,
             ConnType kind) { return me.connectTo(to, from, host, number, link, kind); },
          released, peer, self, py::arg("peer_ip"), py::arg("data_port"), py::arg("ctrl_link"),
          type)
      .def(
          "connectTo",
          [](C& me, Text host, uint16_t number, ConnType kind) {
            return me.connectTo(host, number, kind);
          },
          released, ip, port, type)
      .def("closeServer", &C::closeServer, released)
      .def("disConnect", py::overload_cast<Text, uint16_t, ConnType>(&C::disConnect), released, ip,
           port, type)
      .def("disConnect", py::overload_cast<Text, ConnType>(&C::disConnect), released, ip, type)
      .def("checkConn", py::overload_cast<Text, uint16_t, ConnType>(&C::checkConn), released, ip,
           port, type)
      .def("checkConn", py::overload_cast<Text, ConnType>(&C::checkConn), released, ip, type)
      .def("explain", &C::explain, released, ip, port,
           "One line for each transport: whether it serves the peer, and why or why not.");
}

}  // namespace

void bindCommunicator(py::module_& module) {
  py::class_<CtrlLink>(module, "CtrlLink", "How to reach a peer's control channel.")
      .def(py::init([](Communicator::CtrlTransport transport, std::string ip, uint16_t port,
                       std::string path) {
             return CtrlLink{transport, std::move(ip), port, std::move(path)};
           }),
           py::arg("transport") = static_cast<int>(Communicator::CtrlTransport::TCP),
           py::arg("ip") = "", py::arg("port") = 0, py::arg("uds_path") = "")
      .def_readwrite("transport", &CtrlLink::transport)
      .def_readwrite("ip", &CtrlLink::ip)
      .def_readwrite("port", &CtrlLink::port)
      .def_readwrite("uds_path", &CtrlLink::uds_path);

  CommunicatorClass communicator(
      module, "Communicator",
      "One-sided transfers between this process's ConnBuffer and those of its peers. Methods "
      "return a hmc.Status; hmc.Session raises exceptions instead.");
  communicator.def(py::init(&makeCommunicator), py::arg("buffer"), py::arg("num_chs") = 1);
  bindTransfers(communicator);
  bindConnections(communicator);
}

}  // namespace hmc::python
