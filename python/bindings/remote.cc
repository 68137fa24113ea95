#include <optional>

#include "errors.h"
#include "quick_method.h"
#include "transfer.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

// Up to this size a copy takes less time than releasing the GIL and taking it back may.
constexpr size_t kLargestWithGil = 16384;

const char* word(Direction direction) {
  return direction == Direction::put ? "put" : "get";
}

std::string sized(Direction direction, size_t size) {
  return std::string(word(direction)) + " of " + std::to_string(size) + " bytes";
}

// What the caller named as the stream, and whether it is to wait for a get: it need not where the
// caller does.
struct StreamArgument {
  py::handle named;
  bool waits = false;
};

// `shape` is a vector of blocks, or Strided.
template <class Shape>
Transfer begin(Direction direction, const Remote& remote, LocalSide& local, const Shape& shape,
               bool streamWaits = false) {
  const RemoteRegion& there = *remote.memory;
  const LocalRegion& here = *local->memory;
  auto start = [&](const StreamOrder& order) {
    return direction == Direction::put ? there.startPut(here, shape, order)
                                       : there.startGet(here, shape, order);
  };
  auto ticket = withoutGil([&] {
    const StreamOrder after{local.stream(), nullptr};
    if (!after.after || !streamWaits || direction == Direction::put) return start(after);
    auto made = start({after.after, after.after});
    // Where streams cannot wait for the host, only the Ticket tells when the bytes are here.
    return made.status().code() == Code::unsupported ? start(after) : std::move(made);
  });
  return {remote.memory, local->memory, check(std::move(ticket))};
}

void checkFits(Direction direction, const Remote& remote, const LocalSide& local) {
  if (local.size() <= remote.range.size) return;
  raise(Code::outOfRange, sized(direction, local.size()) + " passes the end of the " +
                              std::to_string(remote.range.size) + " bytes of " + title(remote));
}

Block whole(Direction direction, const Remote& remote, LocalSide& local) {
  checkFits(direction, remote, local);
  return {local->range.offset, remote.range.offset, local->range.size};
}

// All of it, if that is short and waits for no peer. False, and nothing done, if not.
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
  finish(transfer.ticket, time, [&] { return sized(direction, block.size) + ", " + title(self); });
}

template <Direction direction>
PyObject* moveMethod(PyObject* self, PyObject* const* given, Py_ssize_t positional,
                     PyObject* givenNames) {
  return forPython([&] {
    constexpr const char* kNames[] = {"local", "timeout", "stream"};
    Arguments<3> arguments;
    sortArguments(word(direction), kNames, 1, arguments.size(), given,
                  static_cast<size_t>(positional), givenNames, arguments.data());
    const auto [local, timeout, stream] = arguments;
    const Timeout time = timeout ? timeoutFrom(timeout) : kDefaultTimeout;
    move(direction, valueOf<Remote>(self), local, time, stream);
  });
}

template <Direction direction>
Transfer startMove(const Remote& self, StreamArgument stream, py::handle object) {
  LocalSide local(self.node, object, stream.named, direction == Direction::get);
  return begin(direction, self, local, std::vector<Block>{whole(direction, self, local)},
               stream.waits);
}

template <Direction direction>
Transfer startBlocks(const Remote& self, StreamArgument stream, py::handle object,
                     py::handle localOffsets, py::handle remoteOffsets, py::handle sizes) {
  LocalSide local(self.node, object, stream.named, direction == Direction::get);
  return begin(direction, self, local,
               blocksFrom(localOffsets, remoteOffsets, sizes, local->range, self.range),
               stream.waits);
}

// The pieces of one side must lie within its range.
void checkStrided(size_t offset, size_t stride, size_t count, size_t length, size_t end,
                  const char* side) {
  size_t last = 0;
  size_t past = 0;
  if (count == 0 || length == 0) return;
  if (!__builtin_mul_overflow(count - 1, stride, &last) &&
      !__builtin_add_overflow(last, offset, &last) &&
      !__builtin_add_overflow(last, length, &past) && past <= end) {
    return;
  }
  raise(Code::outOfRange, std::to_string(count) + " pieces of " + std::to_string(length) +
                              " bytes, " + std::to_string(stride) + " apart from " + side +
                              " offset " + std::to_string(offset) +
                              " on, pass the end of that side's " + std::to_string(end) + " bytes");
}

template <Direction direction>
Transfer startStrided(const Remote& self, StreamArgument stream, py::handle object,
                      size_t localOffset, size_t localStride, size_t remoteOffset,
                      size_t remoteStride, size_t count, size_t length) {
  LocalSide local(self.node, object, stream.named, direction == Direction::get);
  checkStrided(localOffset, localStride, count, length, local->range.size, "local");
  checkStrided(remoteOffset, remoteStride, count, length, self.range.size, "remote");
  return begin(direction, self, local,
               Strided{local->range.offset + localOffset, localStride,
                       self.range.offset + remoteOffset, remoteStride, count, length},
               stream.waits);
}

// Methods that start a transfer, and that wait for it, too. The stream is their last argument.
template <class... Arguments>
auto starting(Transfer (*start)(const Remote&, StreamArgument, Arguments...)) {
  return [=](const Remote& self, Arguments... arguments, py::handle stream) {
    return start(self, {stream, true}, arguments...);
  };
}
template <class... Arguments>
auto blocking(const char* what, Transfer (*start)(const Remote&, StreamArgument, Arguments...)) {
  return [=](const Remote& self, Arguments... arguments, py::handle timeout, py::handle stream) {
    const Timeout time = timeoutFrom(timeout);
    Transfer transfer = start(self, {stream}, arguments...);
    finish(transfer.ticket, time, [&] { return what + title(self); });
  };
}

py::arg_v noStream() {
  return py::arg("stream") = py::none();
}

using RemoteClass = PublicClass<Remote>;

void bindMoves(RemoteClass& remote) {
  addQuickMethod(remote, "put", moveMethod<Direction::put>,
                 R"(put($self, local, timeout=30, stream=None)
--

Copy all bytes of `local` to the beginning of this region.

`local` is a Region, a slice of one, or any array-like object; register one that you
use often, which is faster. The bytes are at the peer when this returns. After
`timeout` seconds the put is cancelled and DeadlineExceeded raised.

Memory of an accelerator is read when the work that is on `stream` by now has run.
That is a handle, or a stream of torch's or CuPy's; by default torch's current one,
or the one that the object names.)");
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

void bindBlocks(RemoteClass& remote) {
  const py::arg local("local");
  const py::arg here("local_offsets");
  const py::arg there("remote_offsets");
  const py::arg sizes("sizes");
  const py::arg_v timeout = py::arg("timeout") = 30;
  remote
      .def("put_blocks", blocking("put of blocks, ", startBlocks<Direction::put>), local, here,
           there, sizes, timeout, noStream(),
           R"(put_blocks(self, local, local_offsets, remote_offsets, sizes, timeout=30, stream=None)
--

Copy many blocks in one transfer, from `local` to this region.

Offsets and sizes are in bytes. Each is an array of integers: numpy's, array.array,
a list; `sizes` may be one int for all blocks. If one block is out of range, none
moves.)")
      .def("get_blocks", blocking("get of blocks, ", startBlocks<Direction::get>), local, here,
           there, sizes, timeout, noStream(),
           R"(get_blocks(self, local, local_offsets, remote_offsets, sizes, timeout=30, stream=None)
--

Copy many blocks in one transfer, from this region to `local`. See put_blocks.)")
      .def("start_put_blocks", starting(startBlocks<Direction::put>), local, here, there, sizes,
           noStream(),
           R"(start_put_blocks(self, local, local_offsets, remote_offsets, sizes, stream=None)
--

Begin put_blocks and return one Transfer for all blocks.)")
      .def("start_get_blocks", starting(startBlocks<Direction::get>), local, here, there, sizes,
           noStream(),
           R"(start_get_blocks(self, local, local_offsets, remote_offsets, sizes, stream=None)
--

Begin get_blocks and return one Transfer for all blocks.)");
}

// `more` are the arguments after those that all four have.
template <class Function, class... More>
void defStrided(RemoteClass& remote, const char* name, Function function, const char* doc,
                const More&... more) {
  remote.def(name, function, py::arg("local"), py::kw_only(), py::arg("local_offset") = 0,
             py::arg("local_stride"), py::arg("remote_offset") = 0, py::arg("remote_stride"),
             py::arg("count"), py::arg("length"), more..., noStream(), doc);
}

void bindStrided(RemoteClass& remote) {
  const py::arg_v timeout = py::arg("timeout") = 30;
  defStrided(
      remote, "put_strided", blocking("put of pieces, ", startStrided<Direction::put>),
      R"(put_strided(self, local, *, local_offset=0, local_stride, remote_offset=0, remote_stride, count, length, timeout=30, stream=None)
--

Copy `count` pieces of `length` bytes from `local` to this region.

On each side the first piece is at the offset and the others follow at the stride,
both in bytes.)",
      timeout);
  defStrided(
      remote, "get_strided", blocking("get of pieces, ", startStrided<Direction::get>),
      R"(get_strided(self, local, *, local_offset=0, local_stride, remote_offset=0, remote_stride, count, length, timeout=30, stream=None)
--

Copy `count` pieces of `length` bytes from this region to `local`. See put_strided.)",
      timeout);
  defStrided(
      remote, "start_put_strided", starting(startStrided<Direction::put>),
      R"(start_put_strided(self, local, *, local_offset=0, local_stride, remote_offset=0, remote_stride, count, length, stream=None)
--

Begin put_strided and return a Transfer.)");
  defStrided(
      remote, "start_get_strided", starting(startStrided<Direction::get>),
      R"(start_get_strided(self, local, *, local_offset=0, local_stride, remote_offset=0, remote_stride, count, length, stream=None)
--

Begin get_strided and return a Transfer.)");
}

}  // namespace

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
  bindMoves(remote);
  bindBlocks(remote);
  bindStrided(remote);
}

}  // namespace hmc::python
