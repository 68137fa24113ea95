#include "hmc/grant.h"

#include <pybind11/stl.h>

#include <chrono>

#include "errors.h"
#include "regions.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

// Whoever made the bytes chose the name.
py::str nameOf(const Grant& self) {
  return py::bytes(self.name()).attr("decode")("utf-8", "replace");
}

py::object expiresOf(const Grant& self) {
  const auto end = self.expires();
  if (!end) return py::none();
  return py::float_(std::chrono::duration<double>(end->time_since_epoch()).count());
}

Grant narrow(const Grant& self, py::handle offset, py::handle nbytes, const Limits& limits) {
  GrantOptions options = optionsFrom(limits);
  options.offset = sizeFrom(offset, "an offset");
  if (!nbytes.is_none()) {
    options.size = sizeFrom(nbytes, "a size");
    if (options.size == 0) raise(Code::invalidArgument, "a grant is for one byte at least");
  }
  return check(self.narrow(options));
}

}  // namespace

GrantOptions optionsFrom(const Limits& limits) {
  GrantOptions options;
  if (limits.access) options.access = accessFrom(*limits.access);
  if (limits.peer) options.peerId = limits.peer->peer->id();
  if (!limits.lifetime) return options;
  options.lifetime = timeoutFrom(py::float_(*limits.lifetime));
  if (options.lifetime.count() == 0)
    raise(Code::invalidArgument, "a lifetime of 0 seconds: give more, or None for no end");
  return options;
}

Grant grantFrom(const py::object& bytes) {
  const auto copied = py::reinterpret_steal<py::object>(PyBytes_FromObject(bytes.ptr()));
  if (!copied) throw py::error_already_set();
  return check(Grant::fromBytes(py::cast<std::string>(copied)));
}

void bindGrant(py::module_& module) {
  PublicClass<Grant> grant(module, "Grant",
                           R"(What its holder may reach of one region of a Node, and until when.

Made by Region.grant, and opened with Peer.open by whoever has its bytes:

peer.open(hmc.Grant(token)))");
  grant
      .property("bytes", "What to send to whoever shall use it. Strangers must not see it.",
                [](const Grant& self) { return py::bytes(self.bytes()); })
      .property("name", "The region that it is for.", nameOf)
      .property("nbytes", "The length of the range that it is for.",
                [](const Grant& self) { return self.size(); })
      .property("access", "\"r\" (read) or \"rw\" (read and write).",
                [](const Grant& self) { return accessWord(self.access()); })
      .property("expires", "When it ends, as time.time() counts; None if only with the region.",
                expiresOf)
      .def(py::init(&grantFrom), py::arg("bytes"), "__init__(self, bytes)\n--\n\n")
      .def(
          "narrow",
          [](const Grant& self, py::handle offset, py::handle nbytes,
             std::optional<std::string> access, std::optional<double> lifetime,
             std::optional<PeerOf> peer) {
            return narrow(self, offset, nbytes, {std::move(access), lifetime, std::move(peer)});
          },
          py::kw_only(), py::arg("offset") = 0, py::arg("nbytes") = py::none(),
          py::arg("access") = py::none(), py::arg("lifetime") = py::none(),
          py::arg("peer") = py::none(),
          R"(narrow(self, *, offset=0, nbytes=None, access=None, lifetime=None, peer=None)
--

A Grant that allows less, for somebody else. Nobody is asked.

`offset` counts from the first byte of this one. The rest is as in Region.grant.)")
      .def("__repr__", [](const Grant& self) {
        return py::str("<hmc.Grant \"{}\", {} bytes, {}>")
            .format(nameOf(self), self.size(), accessWord(self.access()));
      });
}

}  // namespace hmc::python
