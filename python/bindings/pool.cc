#include "pool.h"

#include <pybind11/stl.h>

#include "errors.h"
#include "event_loop.h"
#include "transfer.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

struct PoolEventOf {
  uint32_t rank;
  PoolEvent::Kind kind;
  std::string reason;
};

uint32_t rankFrom(py::handle number, const char* what) {
  const size_t rank = sizeFrom(number, what);
  if (rank > UINT32_MAX)
    raise(Code::invalidArgument, std::string(what) + " " + std::to_string(rank) + " is too large");
  return static_cast<uint32_t>(rank);
}

PoolOf joinPool(const std::string& store, const std::string& name, py::handle rank,
                py::handle capacity, py::handle hostSize, py::handle deviceSize,
                py::handle hostStride, py::handle deviceStride, py::handle device,
                const std::optional<int>& numaNode, bool serveStore,
                const std::optional<std::string>& listen, const std::optional<std::string>& secret,
                py::handle transports, double heartbeat, std::optional<double> lease,
                py::handle timeout, bool insecure, const std::optional<std::string>& tls,
                py::handle certificates, py::handle tlsExceptions, const std::string& keyPassword,
                py::handle crl, const std::string& dataPorts, std::optional<bool> integrity) {
  PoolOptions options;
  options.name = name;
  if (!rank.is_none()) options.rank = rankFrom(rank, "rank");
  options.capacity = rankFrom(capacity, "capacity");
  options.hostSize = sizeFrom(hostSize, "host_size");
  options.deviceSize = sizeFrom(deviceSize, "device_size");
  options.hostStride = sizeFrom(hostStride, "host_stride");
  options.deviceStride = sizeFrom(deviceStride, "device_stride");
  if (!device.is_none()) options.device = deviceFrom(device);
  options.numaNode = numaNode;
  options.serveStore = serveStore;
  options.listen = listen.value_or("");
  options.node.secret = secret.value_or("");
  options.node.insecure = insecure;
  options.node.dataPorts = dataPorts;
  options.node.tls = tlsFrom(tls, certificates, keyPassword, crl, tlsExceptions);
  options.node.integrity = integrity;
  if (auto names = namesFrom(transports, "transports")) options.node.transports = *std::move(names);
  options.node.heartbeat = millisecondsFrom(heartbeat, "a heartbeat");
  if (lease) options.node.lease = millisecondsFrom(*lease, "a lease");
  const Timeout time = timeoutFrom(timeout);
  auto joined = withoutGil([&] { return Pool::join(store, options, time); });
  return {std::make_shared<PoolUse>(Handle<Pool>(check(std::move(joined))))};
}

SlotOf slotOf(const PoolOf& self, py::handle rank, const std::string& space) {
  const PoolSlot slot = check(self->slot(rankFrom(rank, "rank"), spaceFrom(space)));
  return {self.use, slot, {0, slot.size}};
}

PoolEventOf eventOf(const PoolEvent& event) {
  return {event.rank, event.kind, event.reason.message()};
}

PoolEventOf nextEvent(const PoolOf& self, py::handle timeout) {
  Pool& pool = *self;
  return eventOf(check(inShortWaits(timeoutFrom(timeout), Code::deadlineExceeded,
                                    [&](Timeout some) { return pool.nextEvent(some); })));
}

py::object eventIfAny(const PoolOf& self) {
  auto event = self->nextEvent(Timeout(0));
  if (event.status().code() == Code::deadlineExceeded) return py::none();
  return py::cast(eventOf(check(std::move(event))));
}

bool isMember(const PoolOf& self) {
  const uint32_t own = self->rank();
  for (uint32_t rank : self->ranks()) {
    if (rank == own) return true;
  }
  return false;
}

void leave(const PoolOf& self, py::handle timeout) {
  const Timeout time = timeoutFrom(timeout);
  Pool& pool = *self;
  check(withoutGil([&] { return pool.leave(time); }));
}

// The exception that ends the block says more than one that follows from it.
void leaveBlock(const PoolOf& self, const py::args& why) {
  if (!isMember(self)) return;
  Pool& pool = *self;
  const Status left = withoutGil([&] { return pool.leave(); });
  if (why.empty() || why[0].is_none()) check(left);
}

const char* eventWord(const PoolEventOf& event) {
  return event.kind == PoolEvent::Kind::joined ? "joined" : "left";
}

void bindPoolEvent(py::module_& module) {
  PublicClass<PoolEventOf> event(module, "PoolEvent", "A member joined a Pool or left it.");
  event.property("rank", "Which one.", &PoolEventOf::rank)
      .property("kind", "\"joined\" or \"left\".", eventWord)
      .property("reason", "Why it left; empty if it joined, or left by itself.",
                &PoolEventOf::reason)
      .def("__repr__", [](const PoolEventOf& self) {
        return "<hmc.PoolEvent: rank " + std::to_string(self.rank) + " " + eventWord(self) + ">";
      });
}

using PoolClass = PublicClass<PoolOf>;

void bindMembers(PoolClass& pool) {
  const py::arg_v space = py::arg("space") = "host";
  pool.property("rank", "Our own.", [](const PoolOf& self) { return self->rank(); })
      .property("capacity", "The most members that there may be.",
                [](const PoolOf& self) { return self->capacity(); })
      .property("ranks", "The ranks that are here now, our own included.",
                [](const PoolOf& self) { return self->ranks(); })
      .def(
          "base",
          [](const PoolOf& self, const std::string& which) {
            return reinterpret_cast<uintptr_t>(self->base(spaceFrom(which)));
          },
          space, "base(self, space='host')\n--\n\nThe address of slot 0.")
      .def(
          "stride",
          [](const PoolOf& self, const std::string& which) {
            return self->stride(spaceFrom(which));
          },
          space, "stride(self, space='host')\n--\n\nThe distance between two slots, in bytes.")
      .def("slot", slotOf, py::arg("rank"), space, R"(slot(self, rank, space='host')
--

The memory that a member brings, as a Slot. NotFound if that rank is not here.)");
}

void bindEvents(PoolClass& pool) {
  pool.def("next_event", nextEvent, py::arg("timeout") = 30, R"(next_event(self, timeout=30)
--

Wait until a member joins or leaves; return a PoolEvent.

The first calls return the members that were here before us. Each event goes to one
receiver.)")
      .def(
          "event_fileno", [](const PoolOf& self) { return check(self->eventFd()); },
          "event_fileno(self)\n--\n\nA descriptor that is readable while next_event would return "
          "at once.")
      .def(
          "events",
          [](const py::object& self) {
            return eventLoop().attr("stream")(self.attr("event_fileno"),
                                              self.attr("_event_if_any"));
          },
          "events(self)\n--\n\nThe same until we leave: `async for event in ...`.")
      .def("_event_if_any", eventIfAny, "_event_if_any(self)\n--\n\n");
}

}  // namespace

PoolSpace spaceFrom(const std::string& word) {
  if (word == "host") return PoolSpace::host;
  if (word == "device") return PoolSpace::device;
  raise(Code::invalidArgument, "space \"" + word + "\": it is \"host\" or \"device\"");
}

const char* spaceWord(PoolSpace space) {
  return space == PoolSpace::host ? "host" : "device";
}

void bindPool(py::module_& module) {
  bindSlot(module);
  bindPoolTransfer(module);
  bindPoolEvent(module);
  PoolClass pool(module, "Pool", R"(Memory of many processes in one address space.

with hmc.Pool("tcp://10.0.0.1:7000", capacity=8, host_size=1 << 30) as pool: ...

store          the address of the store through which members find each other; empty: rank,
               capacity and store are those of the launcher (hmc pool run, torchrun, mpirun, srun)
name           several pools may share one store
rank           our own; None takes the lowest that is free
capacity       the most members that there may ever be; the first member decides
host_size      the bytes of CPU memory that we bring; 0 is fine
device_size    the bytes of memory on `device` that we bring
host_stride    the most that any member may bring; the first member decides
device_stride  the same for device memory
device         "cuda:0"; None is CPU memory
numa_node      where host_size lies; None leaves it to the kernel
serve_store    serve the store from this process unless somebody does already
listen         the address where members reach us; None picks one
secret         the same for all members and the store; HMC_SECRET if empty
transports     the names of those to use, best first, or one name; None: HMC_TRANSPORTS, or all
heartbeat      seconds between signs of life
lease          seconds of silence after which a member is gone; None: HMC_LEASE_MS, or 10
timeout        seconds that joining may take
insecure       without a secret: listen also where other hosts reach it, for everybody there
tls, certificates, tls_exceptions, tls_key_password, tls_crl  as Node has them; also for the store
integrity, data_ports   as Node has them

Leaving the `with` block leaves the pool.)");
  pool.def(
      py::init(&joinPool), py::arg("store") = "", py::kw_only(), py::arg("name") = "pool",
      py::arg("rank") = py::none(), py::arg("capacity") = 0, py::arg("host_size") = 0,
      py::arg("device_size") = 0, py::arg("host_stride") = 0, py::arg("device_stride") = 0,
      py::arg("device") = py::none(), py::arg("numa_node") = py::none(),
      py::arg("serve_store") = false, py::arg("listen") = py::none(), py::arg("secret") = "",
      py::arg("transports") = py::none(), py::arg("heartbeat") = 1.0, py::arg("lease") = py::none(),
      py::arg("timeout") = 30, py::arg("insecure") = false, py::arg("tls") = py::none(),
      py::arg("certificates") = py::none(), py::arg("tls_exceptions") = py::none(),
      py::arg("tls_key_password") = "", py::arg("tls_crl") = py::none(), py::arg("data_ports") = "",
      py::arg("integrity") = py::none(),
      R"(__init__(self, store='', *, name='pool', rank=None, capacity=0, host_size=0, device_size=0, host_stride=0, device_stride=0, device=None, numa_node=None, serve_store=False, listen=None, secret='', transports=None, heartbeat=1.0, lease=None, timeout=30, insecure=False, tls=None, certificates=None, tls_exceptions=None, tls_key_password='', tls_crl=None, data_ports='', integrity=None)
--

)");
  bindMembers(pool);
  bindPoolCopies(pool);
  bindEvents(pool);
  pool.def("leave", leave, py::arg("timeout") = 30, R"(leave(self, timeout=30)
--

Give our slots back: when this returns, no member reaches them any more.)")
      .def(
          "__enter__", [](py::object self) { return self; }, "__enter__(self)\n--\n\n")
      .def("__exit__", leaveBlock, "__exit__(self, *why)\n--\n\nLeave it.")
      .def("__repr__", [](const PoolOf& self) {
        return "<hmc.Pool: rank " + std::to_string(self->rank()) + " of " +
               std::to_string(self->capacity()) + (isMember(self) ? ">" : ", left>");
      });
}

}  // namespace hmc::python
