#include <cstdint>
#include <utility>

#include "errors.h"
#include "event_loop.h"
#include "pool.h"
#include "torch.h"
#include "transfer.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

// A copy by the processor that is longer checks for Ctrl-C in between.
constexpr size_t kLargestAtOnce = size_t{64} << 20;

// One side of a copy.
struct End {
  enum class Kind : uint8_t { address, slot, array };
  Kind kind;
  char* at;
  std::optional<size_t> size;  // none for an address, and where the slot's member has to be asked
  py::object owner;            // keeps an array alive
};

bool isNumber(py::handle object) {
  if (PyBool_Check(object.ptr())) return false;
  return PyLong_Check(object.ptr()) ||
         (PyIndex_Check(object.ptr()) && !py::hasattr(object, "__len__"));
}

End addressEnd(py::handle object) {
  const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr()));
  if (!number) throw py::error_already_set();
  const size_t address = PyLong_AsSize_t(number.ptr());
  if (PyErr_Occurred() || address == 0) {
    PyErr_Clear();
    raise(Code::invalidArgument, py::cast<std::string>(py::repr(object)) +
                                     " is no address: pass one of a slot, or of this process");
  }
  return {End::Kind::address, reinterpret_cast<char*>(address), {}, {}};  // NOLINT
}

End slotEnd(const PoolOf& pool, const SlotOf& slot) {
  if (slot.use != pool.use && !slot.whole.mapped) {
    raise(Code::invalidArgument, title(slot) +
                                     " is of another Pool and not mapped here: copy it "
                                     "with that one, to memory of this process");
  }
  const bool known = slot.whole.size != 0;
  return {End::Kind::slot,
          slot.address(),
          known ? std::optional<size_t>(slot.range.size) : std::nullopt,
          {}};
}

// torch's current stream is waited for, because copies of a pool are not ordered with streams.
End arrayEnd(py::handle object, bool writes) {
  const auto tensor = torch::describe(object);
  if (tensor && tensor->device.isHost()) {
    return {End::Kind::array, static_cast<char*>(tensor->data), tensor->size,
            py::reinterpret_borrow<py::object>(object)};
  }
  const py::object span = callPython(inArrays(writes ? "destination" : "source"), object);
  callPython(inArrays("settle"), span, object);
  auto* at = reinterpret_cast<char*>(py::cast<uintptr_t>(span.attr("pointer")));  // NOLINT
  return {End::Kind::array, at, py::cast<size_t>(span.attr("nbytes")), span.attr("owner")};
}

End endFrom(const PoolOf& pool, py::handle object, bool writes) {
  if (py::isinstance<SlotOf>(object)) return slotEnd(pool, py::cast<const SlotOf&>(object));
  return isNumber(object) ? addressEnd(object) : arrayEnd(object, writes);
}

std::string bytes(size_t size) {
  return std::to_string(size) + " bytes";
}

void checkFits(size_t size, const End& end, const char* side) {
  if (end.size && size > *end.size) {
    raise(Code::outOfRange, "a copy of " + bytes(size) + " passes the end of the " +
                                bytes(*end.size) + " to copy " + side);
  }
}

size_t sizeOfCopy(const End& to, const End& from, py::handle given) {
  std::optional<size_t> size;
  if (!given.is_none()) {
    size = sizeFrom(given, "size");
  } else if (!to.size && !from.size) {
    raise(Code::invalidArgument, "two addresses do not say how much to copy: pass size=");
  } else if (to.size && from.size && to.kind == from.kind && *to.size != *from.size) {
    raise(Code::invalidArgument, "from " + bytes(*from.size) + " to " + bytes(*to.size) +
                                     ": pass size=, or sides of the same length");
  } else {
    const bool byTo = to.size && (!from.size || to.kind == End::Kind::array);
    size = byTo ? to.size : from.size;
  }
  checkFits(*size, to, "to");
  checkFits(*size, from, "from");
  return *size;
}

// Copies and the objects that they need.
struct Copies {
  std::vector<PoolCopy> list;
  std::vector<py::object> objects;

  void add(char* to, const char* from, size_t size) { list.push_back({to, from, size}); }
  void keep(End& end) {
    if (end.owner) objects.push_back(std::move(end.owner));
  }
};

PoolTransferOf startBatch(const PoolOf& self, Copies copies, Timeout timeout) {
  self.use->forgetDone();
  Pool& pool = *self;
  const size_t count = copies.list.size();
  PoolTicket ticket = check(withoutGil([&] { return pool.startCopy(copies.list, timeout); }));
  return {self.use, std::make_shared<Batch>(std::move(ticket), std::move(copies.objects), count)};
}

// For a blocking call: what is late, or interrupted, is cancelled before this ends.
void finishBatch(Batch& batch, Timeout timeout, const std::string& what) {
  Status status;
  auto wait = [&](Timeout some) {
    status = batch.wait(some);
    return status.ok() ? Result<bool>(true) : status;
  };
  try {
    (void)inShortWaits(timeout, Code::deadlineExceeded, wait);
  } catch (py::error_already_set&) {
    withoutGil([&] { batch.cancel(); });
    throw;
  }
  if (status.code() == Code::deadlineExceeded && !withoutGil([&] { return batch.done(); })) {
    withoutGil([&] { batch.cancel(); });
    check(status.within(what));
  }
  check(status);
}

// Memory that this process copies by itself: its own, and host slots that are mapped.
bool isHere(const Pool& pool, const char* at) {
  for (PoolSpace space : {PoolSpace::host, PoolSpace::device}) {
    const auto offset =
        reinterpret_cast<uintptr_t>(at) - reinterpret_cast<uintptr_t>(pool.base(space));
    if (offset >= pool.stride(space) * pool.capacity()) continue;
    const auto slot = pool.slotOf(at);
    return slot.ok() && slot->mapped && slot->device.isHost();
  }
  return true;
}

void copyHere(const Pool& pool, char* to, const char* from, size_t size, Timeout timeout) {
  const Deadline deadline(timeout);
  const bool overlap = std::less<>()(from, to + size) && std::less<>()(to, from + size);
  size_t done = 0;
  do {
    const size_t piece = overlap ? size : std::min(size - done, kLargestAtOnce);
    check(withoutGil([&] { return pool.copy(to + done, from + done, piece, deadline.left()); }));
    done += piece;
    if (done < size && PyErr_CheckSignals() != 0) throw py::error_already_set();
  } while (done < size);
}

void copy(const PoolOf& self, py::handle to, py::handle from, py::handle size, py::handle timeout) {
  const Timeout time = timeoutFrom(timeout);
  End there = endFrom(self, to, true);
  End here = endFrom(self, from, false);
  const size_t count = sizeOfCopy(there, here, size);
  if (isHere(*self, there.at) && isHere(*self, here.at))
    return copyHere(*self, there.at, here.at, count, time);
  const Deadline deadline(time);
  Copies copies;
  copies.add(there.at, here.at, count);
  const PoolTransferOf transfer = startBatch(self, std::move(copies), time);
  finishBatch(*transfer.batch, deadline.left(), "a copy of " + bytes(count));
}

// What follows the last row does not count.
void checkRows(const End& end, size_t pitch, size_t width, size_t rows, const char* side) {
  size_t length = 0;
  if (width > pitch) {
    raise(Code::invalidArgument, "rows of " + bytes(width) + " do not fit into a pitch of " +
                                     bytes(pitch) + " to copy " + side);
  }
  if (rows == 0) return;
  if (__builtin_mul_overflow(rows - 1, pitch, &length) ||
      __builtin_add_overflow(length, width, &length)) {
    raise(Code::outOfRange, std::to_string(rows) + " rows that lie " + bytes(pitch) +
                                " apart: no memory is as large");
  }
  checkFits(length, end, side);
}

void copyRows(const PoolOf& self, py::handle to, py::handle toPitch, py::handle from,
              py::handle fromPitch, py::handle width, py::handle rows, py::handle timeout) {
  const Timeout time = timeoutFrom(timeout);
  const Deadline deadline(time);
  const End there = endFrom(self, to, true);
  const End here = endFrom(self, from, false);
  const size_t toStep = sizeFrom(toPitch, "to_pitch");
  const size_t fromStep = sizeFrom(fromPitch, "from_pitch");
  const size_t length = sizeFrom(width, "width");
  const size_t count = sizeFrom(rows, "rows");
  checkRows(there, toStep, length, count, "to");
  checkRows(here, fromStep, length, count, "from");
  Copies copies;
  for (size_t row = 0; row < count; ++row)
    copies.add(there.at + row * toStep, here.at + row * fromStep, length);
  const PoolTransferOf transfer = startBatch(self, std::move(copies), time);
  finishBatch(*transfer.batch, deadline.left(), "a copy of " + std::to_string(count) + " rows");
}

[[noreturn]] void refuseCopy(size_t index, py::handle what) {
  throw py::type_error("copies[" + std::to_string(index) + "] is " +
                       py::cast<std::string>(py::repr(what)) +
                       ": pass tuples of (to, from) or (to, from, size)");
}

PoolTransferOf startCopy(const PoolOf& self, const py::iterable& all, py::handle timeout) {
  const Timeout time = timeoutFrom(timeout);
  Copies copies;
  for (py::handle one : all) {
    const bool isTuple = py::isinstance<py::tuple>(one) || py::isinstance<py::list>(one);
    const size_t length = isTuple ? py::len(one) : 0;
    if (length != 2 && length != 3) refuseCopy(copies.list.size(), one);
    const auto parts = py::reinterpret_borrow<py::sequence>(one);
    End to = endFrom(self, parts[0], true);
    End from = endFrom(self, parts[1], false);
    const py::object given = length == 3 ? py::object(parts[2]) : py::none();
    const size_t size = sizeOfCopy(to, from, given);
    copies.add(to.at, from.at, size);
    copies.keep(to);
    copies.keep(from);
  }
  return startBatch(self, std::move(copies), time);
}

void registerArray(const PoolOf& self, py::handle object) {
  const py::object span = callPython(inArrays("destination"), object);
  auto* data = reinterpret_cast<void*>(py::cast<uintptr_t>(span.attr("pointer")));  // NOLINT
  const auto size = py::cast<size_t>(span.attr("nbytes"));
  Pool& pool = *self;
  check(withoutGil([&] { return pool.registerMemory(data, size); }));
  self.use->registered[data] = span.attr("owner");
}

void unregisterArray(const PoolOf& self, py::handle object) {
  const py::object span = callPython(inArrays("span_of"), object);
  auto* data = reinterpret_cast<void*>(py::cast<uintptr_t>(span.attr("pointer")));  // NOLINT
  Pool& pool = *self;
  check(withoutGil([&] { return pool.unregisterMemory(data); }));
  self.use->registered.erase(data);
}

}  // namespace

void bindPoolCopies(PublicClass<PoolOf>& pool) {
  const py::arg_v timeout = py::arg("timeout") = 30;
  pool.def("copy", copy, py::arg("to"), py::arg("from_"), py::arg("size") = py::none(), timeout,
           R"(copy(self, to, from_, size=None, timeout=30)
--

Copy bytes between any two memories; they are in place when this returns.

Each side is a Slot, a slice of one, any array-like object of this process, or an
address. Without `size`, all bytes of the array are copied, or all of the slot if there
is no array; two arrays, or two slots, must have the same length. After `timeout`
seconds the copy is cancelled and DeadlineExceeded raised.

For a torch tensor on an accelerator, torch's current stream is waited for first.)")
      .def("copy_2d", copyRows, py::arg("to"), py::arg("to_pitch"), py::arg("from_"),
           py::arg("from_pitch"), py::arg("width"), py::arg("rows"), timeout,
           R"(copy_2d(self, to, to_pitch, from_, from_pitch, width, rows, timeout=30)
--

Copy `rows` rows of `width` bytes, which lie a pitch apart on each side. See copy.)")
      .def("start_copy", startCopy, py::arg("copies"), timeout,
           R"(start_copy(self, copies, timeout=30)
--

Begin a batch of copies and return one PoolTransfer for all of them.

Each is a tuple (to, from) or (to, from, size), see copy. They run in any order. The
first copy to a member of another host connects to it, for which there is `timeout`.)")
      .def(
          "copy_async",
          [](const py::object& self, py::handle to, py::handle from, py::handle size) {
            // In this thread, because torch's current stream is another in each.
            const auto& through = py::cast<const PoolOf&>(self);
            sizeOfCopy(endFrom(through, to, true), endFrom(through, from, false), size);
            return eventLoop().attr("copy")(self, to, from, size);
          },
          py::arg("to"), py::arg("from_"), py::arg("size") = py::none(),
          R"(copy_async(self, to, from_, size=None)
--

The same as copy in asyncio: `await pool.copy_async(to, from_)`.

Cancelling the task, as asyncio.wait_for does, cancels the copy. A thread of the loop's
executor waits for it.)")
      .def("register", registerArray, py::arg("obj"), R"(register(self, obj)
--

Prepare a writable array for copies to and from other hosts, which are then faster.

The Pool keeps it alive until `unregister`.)")
      .def("unregister", unregisterArray, py::arg("obj"),
           "unregister(self, obj)\n--\n\nUndo `register`.");
}

}  // namespace hmc::python
