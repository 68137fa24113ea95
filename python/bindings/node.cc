#include "hmc/node.h"

#include <pybind11/stl.h>

#include <map>
#include <optional>

#include "errors.h"
#include "event_loop.h"
#include "interruptible.h"
#include "messages.h"
#include "prepared.h"
#include "region_type.h"
#include "transfer.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

std::string listen(NodeOf& self, const std::string& address) {
  Node& node = *self.node;
  std::string bound = check(withoutGil([&] { return node.listen(address); }));
  if (!self.address) self.address = bound;
  return bound;
}

// None is as good as an empty one.
using MaybeText = std::optional<std::string>;

NodeOf makeNode(const MaybeText& name, const MaybeText& listener, const MaybeText& secret,
                py::handle transports, int channels, double heartbeat, std::optional<double> lease,
                bool insecure, const MaybeText& advertise, const std::optional<std::string>& tls,
                py::handle certificates, py::handle tlsExceptions, const MaybeText& keyPassword,
                py::handle crl, const MaybeText& dataPorts, bool grantsOnly,
                std::optional<bool> integrity) {
  NodeOptions options;
  options.integrity = integrity;
  options.name = name.value_or("");
  options.secret = secret.value_or("");
  options.insecure = insecure;
  options.advertise = advertise.value_or("");
  options.dataPorts = dataPorts.value_or("");
  options.grantsOnly = grantsOnly;
  options.tls = tlsFrom(tls, certificates, keyPassword.value_or(""), crl, tlsExceptions);
  if (auto names = namesFrom(transports, "transports")) options.transports = *std::move(names);
  if (channels < 1 || channels > 16) {
    raise(Code::invalidArgument,
          std::to_string(channels) + " channels: a peer can have 1 to 16 of them");
  }
  options.channels = channels;
  options.heartbeat = millisecondsFrom(heartbeat, "a heartbeat");
  if (lease) options.lease = millisecondsFrom(*lease, "a lease");
  NodeOf made{Handle<Node>(check(withoutGil([&] { return Node::create(options); }))), {}, {}};
  if (listener) listen(made, *listener);
  return made;
}

Region keep(NodeOf& self, Region region) {
  if (const std::string& name = region.memory->name(); !name.empty())
    self.named.emplace(name, region.memory);
  return region;
}

void unregister(NodeOf& self, const std::string& name) {
  auto found = self.named.extract(name);
  if (found.empty()) raise(Code::notFound, "no region called \"" + name + "\" is registered here");
}

Region allocate(NodeOf& self, py::handle nbytes, const std::string& name, py::handle device,
                const std::string& access, py::handle dtype, py::handle shape) {
  const Device where = deviceFrom(device);
  const Access allowed = accessFrom(access);
  const WantedArray wanted = arrayFrom(dtype, shape, nbytes);
  Node& node = *self.node;
  auto made = withoutGil([&] {
    return node.allocate(name, wanted.size, where, allowed,
                         wanted.type ? *wanted.type : ArrayType());
  });
  Handle<LocalRegion> memory(check(std::move(made)));
  return keep(self, {self.node, std::move(memory), {0, wanted.size}, allowed, false, wanted.type});
}

PeerOf peerOf(const NodeOf& self, Result<Peer> peer) {
  return {self.node, Handle<Peer>(check(std::move(peer)))};
}

PeerOf connect(const NodeOf& self, const std::string& address, py::handle timeout) {
  const Timeout time = timeoutFrom(timeout);
  Node& node = *self.node;
  return peerOf(self, interruptible([kept = self.node, &node, address, time] {
                  return node.connect(address, time);
                }));
}

PeerOf peerNamed(const NodeOf& self, const std::string& name, py::handle timeout) {
  Node& node = *self.node;
  return peerOf(self, inShortWaits(timeoutFrom(timeout), Code::notFound,
                                   [&](Timeout some) { return node.peer(name, some); }));
}

PeerOf peerIn(const NodeOf& self, Peer& peer) {
  return {self.node, Handle<Peer>(std::move(peer))};
}

std::vector<PeerOf> peers(const NodeOf& self) {
  Node& node = *self.node;
  std::vector<PeerOf> all;
  for (Peer& peer : withoutGil([&] { return node.peers(); })) all.push_back(peerIn(self, peer));
  return all;
}

NoteOf publicOf(const NodeOf& self, Note note) {
  return {peerIn(self, note.from), std::move(note.bytes)};
}

CallOf publicOf(const NodeOf& self, Call call) {
  PeerOf peer{self.node, Handle<Peer>(Peer(call.from()))};
  return {std::move(peer), Handle<Call>(std::move(call))};
}

PeerEventOf publicOf(const NodeOf& self, PeerEvent event) {
  return {peerIn(self, event.peer), event.kind, event.reason.message()};
}

// `next` is &Node::nextNote or &Node::nextPeerEvent.
template <auto next>
auto nextOf(const NodeOf& self, py::handle timeout) {
  Node& node = *self.node;
  return publicOf(self, check(inShortWaits(timeoutFrom(timeout), Code::deadlineExceeded,
                                           [&](Timeout some) { return (node.*next)(some); })));
}

template <auto next>
py::object nextIfAny(const NodeOf& self) {
  auto one = ((*self.node).*next)(Timeout(0));
  if (one.status().code() == Code::deadlineExceeded) return py::none();
  return py::cast(publicOf(self, check(std::move(one))));
}

// The asynchronous iterator of hmc.event_loop over what `take` returns, when `fd` is readable.
py::object stream(const py::object& self, const char* fd, const char* take) {
  return eventLoop().attr("stream")(self.attr(fd), self.attr(take));
}

void close(NodeOf& self) {
  withoutGil([&node = *self.node] { node.close(); });
  std::exchange(self.named, {});
}

void bindNodeMemory(NodeClass& node) {
  node.def(
          "register",
          [](NodeOf& self, py::handle memory, const std::string& name, const std::string& access) {
            return keep(self, registerObject(self.node, memory, name, accessFrom(access)));
          },
          py::arg("obj"), py::arg("name") = "", py::arg("access") = "rw",
          R"(register(self, obj, name='', access='rw')
--

Make an array-like object's memory reachable, without a copy; return a Region.

`obj` has the buffer protocol, DLPack or __cuda_array_interface__. The region keeps it
alive. Peers see the array's dtype and shape, and open it by its name, which is unique in the Node, until the Node is
closed or `unregister` is called. Without a name it only serves transfers that start
here. `access` is what peers may do, "r" or "rw"; a read-only object needs "r".)")
      .def(
          "register_async",
          [](const py::object& self, py::handle memory, py::handle name, py::handle access) {
            return inThread(self, "register", memory, name, access);
          },
          py::arg("obj"), py::arg("name") = "", py::arg("access") = "rw",
          "register_async(self, obj, name='', access='rw')\n--\n\nregister() for `await`.")
      .def("unregister", unregister, py::arg("name"), R"(unregister(self, name)
--

Stop keeping the region of that name for peers.

The name becomes free, and the memory out of peers' reach, when no region, slice or
view of it and no transfer is in use any more.)")
      .def(
          "allocate", allocate, py::arg("nbytes") = py::none(), py::arg("name") = "",
          py::arg("device") = "cpu", py::arg("access") = "rw", py::arg("dtype") = py::none(),
          py::arg("shape") = py::none(),
          R"(allocate(self, nbytes=None, name='', device='cpu', access='rw', dtype=None, shape=None)
--

Allocate memory and return it as a Region. CPU memory is zeroed.

Peers on the same host map it, which is the fastest path there is. The size is `nbytes`,
or that of an array of `dtype`, such as "float32", and `shape`: region.numpy() then shows
that array, and numpy.asarray(region) the bytes.)");
}

void bindNodePeers(NodeClass& node) {
  node.def("listen", listen, py::arg("address"),
           R"(listen(self, address)
--

Open a listener for peers; return its address, with the port that was picked.

"tcp://127.0.0.1:0", "tcp://[::1]:5001", "unix:///run/me.sock".)")
      .def("connect", connect, py::arg("address"), py::arg("timeout") = 30,
           R"(connect(self, address, timeout=30)
--

Connect to the Node that listens at that address; return a Peer.

"host:port", "tcp://[::1]:5001", "unix:///run/me.sock". Where nobody listens yet it
tries again until `timeout` is over.)")
      .def(
          "connect_async",
          [](const py::object& self, py::handle address, py::handle timeout) {
            return inThread(self, "connect", address, timeout);
          },
          py::arg("address"), py::arg("timeout") = 30,
          R"(connect_async(self, address, timeout=30)
--

connect() for `await`, as all methods that end in _async. The call runs in a thread
of the loop's executor; if the task is cancelled, it ends there with its timeout.)")
      .def("peer", peerNamed, py::arg("name"), py::arg("timeout") = 30,
           R"(peer(self, name, timeout=30)
--

Wait until a peer of that name is connected, whichever side connected.)")
      .def(
          "peer_async",
          [](const py::object& self, py::handle name, py::handle timeout) {
            return inThread(self, "peer", name, timeout);
          },
          py::arg("name"), py::arg("timeout") = 30,
          "peer_async(self, name, timeout=30)\n--\n\npeer() for `await`.")
      .def("peers", peers, "peers(self)\n--\n\nAll peers that are connected now.")
      .def("next_note", nextOf<&Node::nextNote>, py::arg("timeout") = 30,
           R"(next_note(self, timeout=30)
--

Wait for a message that a peer sends with Peer.notify; return a Note.)")
      .def(
          "notifications",
          [](const py::object& self) { return stream(self, "_note_fd", "_note_if_any"); },
          R"(notifications(self)
--

The notes that peers send, until the Node is closed: `async for note in ...`.

Each note goes to one receiver, whether it iterates or calls next_note.)")
      .def(
          "serve",
          [](const py::object& self, const py::object& function) {
            return py::module_::import("hmc.serving").attr("serve")(self, function);
          },
          py::arg("function"), R"(serve(self, function)
--

Answer the calls of that name with function(data), as a decorator: `@node.serve`.

A peer's `call("name", data)` returns the bytes that it returns; what it raises is an
error there. A function with a second parameter also gets the peer. One thread of the
Node's answers all calls, one after the other.)")
      .def("next_call", nextOf<&Node::nextCall>, py::arg("timeout") = 30,
           R"(next_call(self, timeout=30)
--

Wait for a call that a peer makes with Peer.call; return a Call to answer.)")
      .def(
          "calls", [](const py::object& self) { return stream(self, "_call_fd", "_call_if_any"); },
          R"(calls(self)
--

The calls that peers make, until the Node is closed: `async for call in ...`.)")
      .def(
          "_call_fd", [](const NodeOf& self) { return check(self.node->callFd()); },
          "_call_fd(self)\n--\n\n")
      .def("_call_if_any", nextIfAny<&Node::nextCall>, "_call_if_any(self)\n--\n\n")
      .def("next_peer_event", nextOf<&Node::nextPeerEvent>, py::arg("timeout") = 30,
           R"(next_peer_event(self, timeout=30)
--

Wait until a peer comes or goes, whichever side connected; return a PeerEvent.

The first call begins with the peers that are connected. Each event goes to one
receiver.)")
      .def(
          "peer_events",
          [](const py::object& self) { return stream(self, "_event_fd", "_event_if_any"); },
          R"(peer_events(self)
--

The same until the Node is closed: `async for event in ...`.)")
      .def(
          "_note_fd", [](const NodeOf& self) { return check(self.node->noteFd()); },
          "_note_fd(self)\n--\n\n")
      .def("_note_if_any", nextIfAny<&Node::nextNote>, "_note_if_any(self)\n--\n\n")
      .def(
          "_event_fd", [](const NodeOf& self) { return check(self.node->peerEventFd()); },
          "_event_fd(self)\n--\n\n")
      .def("_event_if_any", nextIfAny<&Node::nextPeerEvent>, "_event_if_any(self)\n--\n\n");
}

}  // namespace

void bindNode(py::module_& module) {
  bindMessages(module);

  NodeClass node(module, "Node", R"(One participant: it registers memory and connects to peers.

with hmc.Node(name="a", listen="tcp://127.0.0.1:0") as node: ...

name        what peers call it; random if empty
listen      the address to listen at; port 0 picks a port, see `address`
advertise   the host in `address`, where peers reach us by another than we listen at
secret      the same on both sides, or they refuse each other; HMC_SECRET if empty
transports  the names of those to use, best first, or one name; None: HMC_TRANSPORTS, or all
channels    RDMA queue pairs to each peer, 1 to 16
heartbeat   seconds between signs of life
lease       seconds of silence after which a peer is lost; None: HMC_LEASE_MS, or 10
insecure    without a secret: listen also where other hosts reach it, for everybody there
tls         "required": all that leaves the host is encrypted; None is what HMC_TLS says, or "off"
certificates    PEM files for TLS: the CA, our certificate, its key; None: the secret is the key
tls_exceptions  transports that may move bytes unencrypted all the same
tls_key_password    of an encrypted key; HMC_TLS_KEY_PASSWORD if empty
tls_crl     PEM files of the CAs' revocation lists; None is what HMC_TLS_CRL says
data_ports  where tcp takes data of peers that connected to us: "20000-20015", or one port
grants_only     peers open regions by a Grant alone, not by name
integrity   what tcp moves without TLS has checksums; None is what HMC_INTEGRITY says

Leaving the `with` block closes it. Without one it closes when nothing that it made
is in use any more.)");
  node.property("name", "What peers call it.", [](const NodeOf& self) { return self.node->name(); })
      .property("address", "Where peers reach the first listener, or None.", &NodeOf::address)
      .def(
          py::init(&makeNode), py::kw_only(), py::arg("name") = "", py::arg("listen") = py::none(),
          py::arg("secret") = "", py::arg("transports") = py::none(), py::arg("channels") = 1,
          py::arg("heartbeat") = 1.0, py::arg("lease") = py::none(), py::arg("insecure") = false,
          py::arg("advertise") = "", py::arg("tls") = py::none(),
          py::arg("certificates") = py::none(), py::arg("tls_exceptions") = py::none(),
          py::arg("tls_key_password") = "", py::arg("tls_crl") = py::none(),
          py::arg("data_ports") = "", py::arg("grants_only") = false,
          py::arg("integrity") = py::none(),
          R"(__init__(self, *, name='', listen=None, secret='', transports=None, channels=1, heartbeat=1.0, lease=None, insecure=False, advertise='', tls=None, certificates=None, tls_exceptions=None, tls_key_password='', tls_crl=None, data_ports='', grants_only=False, integrity=None)
--

)")
      .def(
          "transports", [](const NodeOf& self) { return self.node->transports(); },
          R"(transports(self)
--

A PathReport for every transport of this process, best first, usable or not.)")
      .def(
          "counters", [](const NodeOf& self) { return self.node->counters(); },
          R"(counters(self)
--

TransportCounts of every usable transport: what this Node has moved so far.)")
      .def("close", close, R"(close(self)
--

Close all listeners, peers and transfers. Handles that are left raise PeerLost.)")
      .def(
          "__enter__", [](py::object self) { return self; }, "__enter__(self)\n--\n\n")
      .def(
          "__exit__", [](NodeOf& self, const py::args& /*why*/) { close(self); },
          "__exit__(self, *why)\n--\n\nClose it.")
      .def("__repr__", [](const NodeOf& self) {
        return "<hmc.Node \"" + self.node->name() + "\"" +
               (self.address ? " at " + *self.address : "") + ">";
      });
  bindNodeMemory(node);
  bindNodePeers(node);
  bindPairs(node);
}

}  // namespace hmc::python
