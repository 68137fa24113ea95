#include <pybind11/stl.h>

#include <algorithm>
#include <array>

#include "errors.h"
#include "handle.h"
#include "hmc/collective.h"
#include "interruptible.h"
#include "pool.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

// By the names that numpy and torch have, in the order of DataType.
constexpr std::array<const char*, 12> kReducibleTypes{"int8",    "uint8",    "int16",   "uint16",
                                                      "int32",   "uint32",   "int64",   "uint64",
                                                      "float16", "bfloat16", "float32", "float64"};
constexpr std::array<const char*, 4> kReduceOps{"sum", "prod", "min", "max"};

template <size_t size>
uint8_t indexIn(const std::array<const char*, size>& names, const std::string& name) {
  for (uint8_t i = 0; i < size; ++i) {
    if (name == names[i]) return i;
  }
  raise(Code::invalidArgument, name + " is no type or operation of numbers that HMC reduces");
}

// An operation of this thread, which has released the GIL.
class Waiting {
 public:
  Waiting() : state_(PyEval_SaveThread()), outer_(current_) { current_ = this; }
  ~Waiting() {
    current_ = outer_;
    takeGil(state_);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  // False when a signal's handler has raised an exception.
  static bool goOn() {
    if (!current_) return true;
    takeGil(current_->state_);
    const bool fine = PyErr_CheckSignals() == 0;
    current_->state_ = PyEval_SaveThread();
    return fine;
  }

 private:
  static thread_local Waiting* current_;
  PyThreadState* state_;
  Waiting* outer_;
};
thread_local Waiting* Waiting::current_ = nullptr;

using Ranks = Handle<Collective>;

template <class Run>
void operate(const Ranks& self, py::handle timeout, Run run) {
  const Timeout time = timeoutFrom(timeout);
  Collective& collective = *self;
  const Status outcome = [&] {
    const Waiting released;
    return run(collective, time);
  }();
  if (PyErr_Occurred()) throw py::error_already_set();
  check(outcome);
}

Ranks beginGroup(uint32_t rank, uint32_t size, const std::string& name, const std::string& listen,
                 const std::string& secret, bool insecure) {
  CollectiveOptions options;
  options.name = name;
  options.rank = rank;
  options.size = size;
  options.listen = listen;
  options.node.secret = secret;
  options.node.insecure = insecure;
  options.goOn = Waiting::goOn;
  auto made = withoutGil([&] { return Collective::begin(options); });
  return Ranks(check(std::move(made)));
}

void connectGroup(const Ranks& self, const std::vector<std::string>& addresses,
                  py::handle timeout) {
  const Timeout time = timeoutFrom(timeout);
  Collective& collective = *self;
  check(interruptible(
      [kept = self, &collective, addresses, time] { return collective.connect(addresses, time); }));
}

void* pointerFrom(uintptr_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

// (address to send from, its bytes, address to receive at, its bytes) of each rank.
using PartOf = std::tuple<uintptr_t, size_t, uintptr_t, size_t>;

void exchange(const Ranks& self, const std::vector<PartOf>& given, py::handle timeout) {
  std::vector<ExchangePart> parts;
  for (const auto& [out, outSize, in, inSize] : given) {
    parts.push_back({pointerFrom(out), outSize, pointerFrom(in), inSize});
  }
  operate(self, timeout, [&](Collective& one, Timeout time) { return one.exchange(parts, time); });
}

void allreduce(const Ranks& self, uintptr_t data, size_t count, const std::string& type,
               const std::string& op, py::handle timeout) {
  const auto kind = static_cast<DataType>(indexIn(kReducibleTypes, type));
  const auto what = static_cast<ReduceOp>(indexIn(kReduceOps, op));
  operate(self, timeout, [&](Collective& one, Timeout time) {
    return one.allreduce(pointerFrom(data), count, kind, what, time);
  });
}

void reduceScatter(const Ranks& self, const std::vector<uintptr_t>& sent, uintptr_t received,
                   size_t count, const std::string& type, const std::string& op,
                   py::handle timeout) {
  std::vector<const void*> parts(sent.size());
  std::transform(sent.begin(), sent.end(), parts.begin(), pointerFrom);
  const auto kind = static_cast<DataType>(indexIn(kReducibleTypes, type));
  const auto what = static_cast<ReduceOp>(indexIn(kReduceOps, op));
  operate(self, timeout, [&](Collective& one, Timeout time) {
    return one.reduceScatter(parts, pointerFrom(received), count, kind, what, time);
  });
}

}  // namespace

void bindCollective(py::module_& module) {
  py::class_<Ranks> type(module, "Collective", R"(One rank of a group; see hmc/collective.h.

Memory is given by its address and has to stay where it is until the call returns.)");
  type.attr("TYPES") = py::frozenset(py::cast(kReducibleTypes));
  const auto timeout = py::arg("timeout") = 30;
  type.def(py::init(&beginGroup), py::arg("rank"), py::arg("size"), py::arg("name") = "default",
           py::arg("listen") = "tcp://127.0.0.1:0", py::arg("secret") = "",
           py::arg("insecure") = false,
           "__init__(self, rank, size, name='default', listen='tcp://127.0.0.1:0', secret='', "
           "insecure=False)\n--\n\n")
      .def_property_readonly(
          "rank", [](const Ranks& self) { return self->rank(); }, "Our own.")
      .def_property_readonly(
          "size", [](const Ranks& self) { return self->size(); }, "How many there are.")
      .def_property_readonly(
          "address", [](const Ranks& self) { return self->address(); },
          "What the others need in connect().")
      .def(
          "path", [](const Ranks& self, uint32_t rank) { return self->path(rank); },
          py::arg("rank"), "path(self, rank)\n--\n\nHow that rank is reached.")
      .def(
          "check", [](const Ranks& self, uint32_t rank) { check(self->status(rank)); },
          py::arg("rank"), "check(self, rank)\n--\n\nRaise why that rank is gone, if it is.")
      .def("connect", connectGroup, py::arg("addresses"), timeout,
           "connect(self, addresses, timeout=30)\n--\n\nConnect to all ranks, whose addresses "
           "are given by rank.")
      .def(
          "barrier",
          [](const Ranks& self, py::handle time) {
            operate(self, time, [](Collective& one, Timeout left) { return one.barrier(left); });
          },
          timeout, "barrier(self, timeout=30)\n--\n\nReturn when all ranks have called it.")
      .def(
          "broadcast",
          [](const Ranks& self, uintptr_t data, size_t nbytes, uint32_t root, py::handle time) {
            operate(self, time, [&](Collective& one, Timeout left) {
              return one.broadcast(pointerFrom(data), nbytes, root, left);
            });
          },
          py::arg("data"), py::arg("nbytes"), py::arg("root"), timeout,
          "broadcast(self, data, nbytes, root, timeout=30)\n--\n\nThe root's bytes become "
          "everybody's.")
      .def(
          "allgather",
          [](const Ranks& self, uintptr_t sent, uintptr_t received, size_t nbytes,
             py::handle time) {
            operate(self, time, [&](Collective& one, Timeout left) {
              return one.allgather(pointerFrom(sent), pointerFrom(received), nbytes, left);
            });
          },
          py::arg("sent"), py::arg("received"), py::arg("nbytes"), timeout,
          "allgather(self, sent, received, nbytes, timeout=30)\n--\n\nEverybody's `nbytes` bytes, "
          "by rank.")
      .def("exchange", exchange, py::arg("parts"), timeout,
           "exchange(self, parts, timeout=30)\n--\n\nFor each rank (address, bytes to send, "
           "address, bytes to receive).")
      .def("allreduce", allreduce, py::arg("data"), py::arg("count"), py::arg("type"),
           py::arg("op"), timeout,
           "allreduce(self, data, count, type, op, timeout=30)\n--\n\nThe result of all ranks' "
           "numbers replaces them.")
      .def("reduce_scatter", reduceScatter, py::arg("sent"), py::arg("received"), py::arg("count"),
           py::arg("type"), py::arg("op"), timeout,
           "reduce_scatter(self, sent, received, count, type, op, timeout=30)\n--\n\nThe result "
           "of all ranks' numbers, `count` of them for each rank, for which sent[rank] is.");
}

}  // namespace hmc::python
