#include "arguments.h"
#include "event_loop.h"
#include "moves.h"
#include "without_gil.h"

// fetch_add and compare_swap.
namespace hmc::python {

namespace py = pybind11;

namespace {

constexpr size_t kWordSize = 8;

// Below zero in two's complement.
uint64_t wordFrom(py::handle number, const char* what) {
  int overflow = 0;
  const long long word = PyLong_Check(number.ptr())
                             ? PyLong_AsLongLongAndOverflow(number.ptr(), &overflow)
                             : static_cast<long long>(sizeFrom(number, what));
  return overflow == 0 ? static_cast<uint64_t>(word) : sizeFrom(number, what);
}

// Where it begins in the whole region.
size_t wordIn(const Remote& self, py::handle offset) {
  const size_t first = sizeFrom(offset, "offset");
  const size_t size = self.range.size;
  if (first <= size && size - first >= kWordSize) return self.range.offset + first;
  raise(Code::outOfRange, "8 bytes at offset " + std::to_string(first) + " pass the end of the " +
                              std::to_string(size) + " bytes of " + title(self));
}

uint64_t fetchAdd(const Remote& self, py::handle offset, py::handle value, py::handle timeout) {
  const size_t at = wordIn(self, offset);
  const uint64_t added = wordFrom(value, "value");
  const Timeout time = timeoutFrom(timeout);
  return check(
      withoutGil([&, &memory = *self.memory] { return memory.fetchAdd(at, added, time); }));
}

uint64_t compareSwap(const Remote& self, py::handle offset, py::handle expected, py::handle desired,
                     py::handle timeout) {
  const size_t at = wordIn(self, offset);
  const uint64_t there = wordFrom(expected, "expected");
  const uint64_t wanted = wordFrom(desired, "desired");
  const Timeout time = timeoutFrom(timeout);
  return check(withoutGil(
      [&, &memory = *self.memory] { return memory.compareSwap(at, there, wanted, time); }));
}

}  // namespace

void bindAtomics(RemoteClass& remote) {
  const py::arg offset("offset");
  const py::arg_v timeout = py::arg("timeout") = 30;
  remote
      .def("fetch_add", fetchAdd, offset, py::arg("value"), timeout,
           R"(fetch_add(self, offset, value, timeout=30)
--

Add to the 8 bytes at `offset` at once, and return what was there before.

They are a number without sign, as numpy.uint64 has it, and begin at a multiple of 8 in
CPU memory. Changes by other peers and the owner's own atomic ones are never lost.
After DeadlineExceeded or PeerLost it may have happened or not.)")
      .def(
          "fetch_add_async",
          [](const py::object& self, py::handle at, py::handle value, py::handle time) {
            return inThread(self, "fetch_add", at, value, time);
          },
          offset, py::arg("value"), timeout,
          "fetch_add_async(self, offset, value, timeout=30)\n--\n\nfetch_add() for `await`.")
      .def("compare_swap", compareSwap, offset, py::arg("expected"), py::arg("desired"), timeout,
           R"(compare_swap(self, offset, expected, desired, timeout=30)
--

Store `desired` in the 8 bytes at `offset` if `expected` is there; return what was there.

It happened if what it returns is `expected`. For the rest see fetch_add.)")
      .def(
          "compare_swap_async",
          [](const py::object& self, py::handle at, py::handle expected, py::handle desired,
             py::handle time) {
            return inThread(self, "compare_swap", at, expected, desired, time);
          },
          offset, py::arg("expected"), py::arg("desired"), timeout,
          "compare_swap_async(self, offset, expected, desired, timeout=30)\n--\n\n"
          "compare_swap() for `await`.");
}

}  // namespace hmc::python
