#include <optional>

#include "moves.h"
#include "region_type.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

// Up to this size a copy takes less time than releasing the GIL and taking it back may.
constexpr size_t kLargestWithGil = 16384;

Block whole(Direction direction, const Remote& remote, LocalSide& local) {
  checkFits(direction, remote, local);
  return {local->range.offset, remote.range.offset, local->range.size};
}

// All of it, where that waits for no peer and so need not check for Ctrl-C in between. False, and
// nothing done, where it may.
bool copyAll(Direction direction, const Remote& remote, LocalSide& local, const Block& block,
             Timeout timeout) {
  const RemoteRegion& there = *remote.memory;
  const LocalRegion& here = *local->memory;
  const auto done = withoutGil([&]() -> std::optional<Status> {
    if (!there.waitsForNobody(here, local.stream())) return std::nullopt;
    return direction == Direction::put
               ? there.put(here, block.localOffset, block.remoteOffset, block.size, timeout)
               : there.get(here, block.localOffset, block.remoteOffset, block.size, timeout);
  });
  if (done) check(*done);
  return done.has_value();
}

void move(Direction direction, const Remote& self, py::handle object, Timeout time,
          py::handle stream) {
  LocalSide local(self.node, object, stream, direction == Direction::get);
  checkFits(direction, self, local);
  if (atOnce(direction, self, local)) return;
  const Block block = whole(direction, self, local);
  if (copyAll(direction, self, local, block, time)) return;
  Transfer transfer = begin(direction, self, local, std::vector<Block>{block});
  finish(transfer, time, [&] { return sized(direction, block.size) + ", " + title(self); });
}

template <Direction direction>
PyObject* moveMethod(PyObject* self, PyObject* const* given, Py_ssize_t positional,
                     PyObject* givenNames) {
  return forPython([&] {
    constexpr const char* kNames[] = {"local", "timeout", "stream", "note"};
    Arguments<4> arguments;
    const size_t most = direction == Direction::put ? 4 : 3;
    sortArguments(word(direction), kNames, 1, most, given, static_cast<size_t>(positional),
                  givenNames, arguments.data());
    const auto [local, timeout, stream, note] = arguments;
    const Timeout time = timeout ? timeoutFrom(timeout) : kDefaultTimeout;
    const Remote& remote = valueOf<Remote>(self);
    if (!note) return move(direction, remote, local, time, stream);
    const Deadline deadline(time);
    move(direction, remote, local, time, stream);
    sendNote(remote, note, deadline);
  });
}

template <Direction direction>
Transfer startMove(const Remote& self, StreamArgument stream, py::handle object) {
  LocalSide local(self.node, object, stream.named, direction == Direction::get);
  return begin(direction, self, local, std::vector<Block>{whole(direction, self, local)},
               stream.waits);
}

void bindMoves(RemoteClass& remote) {
  addQuickMethod(remote, "put", moveMethod<Direction::put>,
                 R"(put($self, local, timeout=30, stream=None, note=None)
--

Copy all bytes of `local` to the beginning of this region.

`local` is a Region, a slice of one, or any array-like object; register one that you
use often, which is faster. The bytes are at the peer when this returns. After
`timeout` seconds the put is cancelled and DeadlineExceeded raised.

Memory of an accelerator is read when the work that is on `stream` by now has run.
That is a handle, or a stream of torch's or CuPy's; by default torch's current one,
or the one that the object names.

`note` is bytes that the peer gets with Node.next_note, after the bytes of the put.)");
  addQuickMethod(remote, "get", moveMethod<Direction::get>,
                 R"(get($self, local, timeout=30, stream=None)
--

Fill all bytes of `local` from the beginning of this region.

`local` is a Region, a slice of one, or any writable, contiguous array-like
object. After `timeout` seconds the get is cancelled and DeadlineExceeded raised.
For `stream` see put.)");
  remote
      .def("start_put", starting(startMove<Direction::put>), py::arg("local"), noStream(),
           R"(start_put(self, local, stream=None)
--

Begin a put and return a Transfer. Leave `local` unchanged until it is done.)")
      .def("start_get", starting(startMove<Direction::get>), py::arg("local"), noStream(),
           R"(start_get(self, local, stream=None)
--

Begin a get and return a Transfer. The bytes are in `local` when it is done.

What is put on `stream` afterwards runs when the get has ended, well or not.)");
}

}  // namespace

void checkFits(Direction direction, const Remote& remote, const LocalSide& local) {
  if (local.size() <= remote.range.size) return;
  raise(Code::outOfRange, sized(direction, local.size()) + " passes the end of the " +
                              std::to_string(remote.range.size) + " bytes of " + title(remote));
}

bool atOnce(Direction direction, const Remote& remote, LocalSide& local) {
  if (local.size() > kLargestWithGil || local.stream()) return false;
  const RemoteRegion& there = *remote.memory;
  const size_t to = remote.range.offset;
  if (const HostBytes* bytes = local.unregistered()) {
    return direction == Direction::put ? there.putAtOnce(bytes->data, to, bytes->size)
                                       : there.getAtOnce(bytes->data, to, bytes->size);
  }
  const auto& [offset, size] = local->range;
  const LocalRegion& here = *local->memory;
  return direction == Direction::put ? there.putAtOnce(here, offset, to, size)
                                     : there.getAtOnce(here, offset, to, size);
}

void sendNote(const Remote& remote, py::handle note, const Deadline& deadline) {
  if (!note || note.is_none()) return;
  if (!PyObject_CheckBuffer(note.ptr())) {
    throw py::type_error("note is " + py::cast<std::string>(py::repr(note)) +
                         ": pass bytes, or None for no note");
  }
  const std::string bytes = bytesFrom(py::reinterpret_borrow<py::buffer>(note));
  const Peer& peer = *remote.peer;
  check(withoutGil([&] { return peer.notify(bytes, deadline.left()); }));
}

std::string title(const Remote& remote) {
  return "the peer's region \"" + remote.name + "\"";
}

void bindRemote(py::module_& module) {
  RemoteClass remote(module, "RemoteRegion", R"(A peer's region, reachable by one-sided put and get.

Made by Peer.open. remote[a:b] is a part of it, in bytes. When the peer is gone, its
methods raise PeerLost: connect and open again.)");
  remote
      .property("name", "The name it was opened by.", [](const Remote& self) { return self.name; })
      .property("device", "Where it lies at the peer: \"cpu\", \"cuda:0\".",
                [](const Remote& self) { return self.memory->device().toString(); })
      .property("access", "What we may do: \"r\" or \"rw\".",
                [](const Remote& self) { return accessWord(self.memory->access()); })
      .property("transport", "The transport that the smallest puts take.",
                [](const Remote& self) { return self.memory->transport(); })
      .property("path", "The transports that reach this memory, and how: \"ipc (mapped)\".",
                [](const Remote& self) { return self.memory->path(); })
      .def(
          "data",
          [](const py::object& self) -> py::object {
            const auto& there = py::cast<const Remote&>(self);
            auto* at = static_cast<char*>(there.memory->data());
            if (!at) return py::none();
            return viewOf(self, at + there.range.offset, there.range.size,
                          there.memory->access() == Access::read);
          },
          R"(data(self)
--

The peer's bytes as a memoryview if they are CPU memory that is mapped here, else None.

numpy.asarray(remote.data()) shows them as an array, without a copy. Once the peer is
gone or has revoked the region, the bytes are no longer the peer's.)")
      .def("__repr__", [](const Remote& self) {
        return "<hmc.RemoteRegion of " + std::to_string(self.range.size) + " bytes on " +
               self.memory->device().toString() + ", \"" + self.name + "\" by " +
               self.memory->path() + ">";
      });
  bindRange(remote);
  bindType(remote);
  bindMoves(remote);
  bindLists(remote);
  bindPrepare(remote);
  bindAtomics(remote);
}

}  // namespace hmc::python
