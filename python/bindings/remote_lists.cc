#include "moves.h"

// put_blocks, put_strided and their kin.
namespace hmc::python {

namespace py = pybind11;

namespace {

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

void bindBlocks(RemoteClass& remote) {
  const py::arg local("local");
  const py::arg here("local_offsets");
  const py::arg there("remote_offsets");
  const py::arg sizes("sizes");
  const py::arg_v timeout = py::arg("timeout") = 30;
  remote
      .def(
          "put_blocks", blockingWithNote("put of blocks, ", startBlocks<Direction::put>), local,
          here, there, sizes, timeout, noStream(), noNote(),
          R"(put_blocks(self, local, local_offsets, remote_offsets, sizes, timeout=30, stream=None, note=None)
--

Copy many blocks in one transfer, from `local` to this region.

Offsets and sizes are in bytes. Each is an array of integers: numpy's, array.array,
a list; `sizes` may be one int for all blocks. If one block is out of range, none
moves. For `note` see put.)")
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

void bindLists(RemoteClass& remote) {
  bindBlocks(remote);
  bindStrided(remote);
}

}  // namespace hmc::python
