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

py::tuple putNB(Communicator& self, const std::string& ip, uint16_t port, size_t local,
                size_t remote, size_t size, ConnType type) {
  return started([&](uint64_t* id) { return self.putNB(ip, port, local, remote, size, id, type); });
}

py::tuple getNB(Communicator& self, const std::string& ip, uint16_t port, size_t local,
                size_t remote, size_t size, ConnType type) {
  return started([&](uint64_t* id) { return self.getNB(ip, port, local, remote, size, id, type); });
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

template <class Class>
void bindTransfers(Class& communicator) {
  const auto released = py::call_guard<ReleasedGil>();
  const int rdma = static_cast<int>(ConnType::RDMA);
  communicator
      .def("put", &Communicator::put, released, py::arg("ip"), py::arg("port"),
           py::arg("local_off"), py::arg("remote_off"), py::arg("size"), py::arg("connType") = rdma)
      .def("get", &Communicator::get, released, py::arg("ip"), py::arg("port"),
           py::arg("local_off"), py::arg("remote_off"), py::arg("size"), py::arg("connType") = rdma)
      .def("putNB", &putNB, py::arg("ip"), py::arg("port"), py::arg("local_off"),
           py::arg("remote_off"), py::arg("size"), py::arg("connType") = rdma,
           "(status, id for wait()).")
      .def("getNB", &getNB, py::arg("ip"), py::arg("port"), py::arg("local_off"),
           py::arg("remote_off"), py::arg("size"), py::arg("connType") = rdma,
           "(status, id for wait()).")
      .def(
          "wait", [](Communicator& self, uint64_t id) { return self.wait(id); }, released,
          py::arg("wr_id"))
      .def(
          "wait", [](Communicator& self, const Ids& ids) { return self.wait(ids); }, released,
          py::arg("wr_ids"))
      .def("putPipeline", &Communicator::putPipeline, released, py::arg("ip"), py::arg("port"),
           py::arg("local_off"), py::arg("remote_off"), py::arg("size"), py::arg("chunk_size") = 0,
           py::arg("max_inflight") = 64, py::arg("connType") = rdma)
      .def("getPipeline", &Communicator::getPipeline, released, py::arg("ip"), py::arg("port"),
           py::arg("local_off"), py::arg("remote_off"), py::arg("size"), py::arg("chunk_size") = 0,
           py::arg("max_inflight") = 64, py::arg("connType") = rdma)
      .def("sendDataTo", &sendDataTo, py::arg("ip"), py::arg("port"), py::arg("send_buf"),
           py::arg("buf_size"), py::arg("buf_type"), py::arg("connType") = rdma)
      .def("recvDataFrom", &recvDataFrom, py::arg("ip"), py::arg("port"), py::arg("recv_buf"),
           py::arg("buf_size"), py::arg("buf_type"), py::arg("connType") = rdma,
           "(status, received bytes).")
      .def("writeTo", &Communicator::writeTo, released, py::arg("ip"), py::arg("ptr_bias"),
           py::arg("size"), py::arg("connType") = rdma)
      .def("readFrom", &Communicator::readFrom, released, py::arg("ip"), py::arg("ptr_bias"),
           py::arg("size"), py::arg("connType") = rdma);
}

template <class Class>
void bindConnections(Class& communicator) {
  const auto released = py::call_guard<ReleasedGil>();
  using C = Communicator;
  communicator.def("ctrlSend", &C::ctrlSend, released, py::arg("peer"), py::arg("tag"))
      .def("ctrlRecv", &receiveTag, py::arg("peer"), "(status, tag).")
      .def("initCtrlServer", &C::initCtrlServer, released, py::arg("bind_ip"), py::arg("tcp_port"),
           py::arg("uds_path") = "")
      .def("closeCtrl", &C::closeCtrl, released)
      .def("connectCtrl", &C::connectCtrl, released, py::arg("peer_id"), py::arg("self_id"),
           py::arg("link"))
      .def("closeCtrlPeer", &C::closeCtrlPeer, released, py::arg("peer_id"))
      .def_static("udsPathFor", &C::udsPathFor, py::arg("dir"), py::arg("peer_id"))
      .def("initServer",
           static_cast<status_t (C::*)(const std::string&, uint16_t, uint16_t, const std::string&,
                                       ConnType)>(&C::initServer),
           released, py::arg("bind_ip"), py::arg("data_port"), py::arg("ctrl_tcp_port"),
           py::arg("ctrl_uds_path"), py::arg("serverType"))
      .def("initServer",
           static_cast<status_t (C::*)(const std::string&, uint16_t, ConnType)>(&C::initServer),
           released, py::arg("ip"), py::arg("port"), py::arg("serverType"))
      .def(
          "connectTo",
          [](C& self, CtrlId peer, CtrlId me, const std::string& ip, uint16_t port,
             const CtrlLink& link,
             ConnType type) { return self.connectTo(peer, me, ip, port, link, type); },
          released, py::arg("peer_id"), py::arg("self_id"), py::arg("peer_ip"),
          py::arg("data_port"), py::arg("ctrl_link"), py::arg("connType"))
      .def(
          "connectTo",
          [](C& self, const std::string& ip, uint16_t port, ConnType type) {
            return self.connectTo(ip, port, type);
          },
          released, py::arg("ip"), py::arg("port"), py::arg("connType"))
      .def("closeServer", &C::closeServer, released)
      .def("disConnect",
           static_cast<status_t (C::*)(const std::string&, uint16_t, ConnType)>(&C::disConnect),
           released, py::arg("ip"), py::arg("port"), py::arg("connType"))
      .def("disConnect", static_cast<status_t (C::*)(const std::string&, ConnType)>(&C::disConnect),
           released, py::arg("ip"), py::arg("connType"))
      .def("checkConn",
           static_cast<status_t (C::*)(const std::string&, uint16_t, ConnType)>(&C::checkConn),
           released, py::arg("ip"), py::arg("port"), py::arg("connType"))
      .def("checkConn", static_cast<status_t (C::*)(const std::string&, ConnType)>(&C::checkConn),
           released, py::arg("ip"), py::arg("connType"))
      .def("explain", &C::explain, released, py::arg("ip"), py::arg("port"),
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

  py::class_<Communicator, std::shared_ptr<Communicator>> communicator(
      module, "Communicator",
      "One-sided transfers between this process's ConnBuffer and those of its peers. Methods "
      "return a hmc.Status; hmc.Session raises exceptions instead.");
  communicator.def(py::init(&makeCommunicator), py::arg("buffer"), py::arg("num_chs") = 1);
  bindTransfers(communicator);
  bindConnections(communicator);
}

}  // namespace hmc::python
