#include "transfer.h"

#include <pybind11/stl.h>

#include <variant>

#include "errors.h"
#include "event_loop.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

py::object await(const py::object& transfer) {
  return eventLoop().attr("outcome")(transfer).attr("__await__")();
}

void bindCompletionQueue(py::module_& module) {
  using Watcher = Handle<CompletionQueue>;
  py::class_<Watcher>(
      module, "CompletionQueue",
      "Reports which of the transfers that it watches are done, through a descriptor.")
      .def(py::init([] { return Watcher(check(CompletionQueue::create())); }),
           "__init__(self)\n--\n\n")
      .def(
          "fileno", [](const Watcher& self) { return self->fd(); },
          "fileno(self)\n--\n\nReadable while take() has an answer.")
      .def(
          "watch",
          [](const Watcher& self, const Transfer& transfer, uint64_t number) {
            check(self->watch(transfer.ticket, number));
          },
          py::arg("transfer"), py::arg("number"),
          "watch(self, transfer, number)\n--\n\nReport this number when the transfer is done.")
      .def(
          "take", [](const Watcher& self) { return self->take(); },
          "take(self)\n--\n\nThe numbers of the transfers that are done since the last call.");
}

}  // namespace

Status waitFor(Ticket& ticket, Timeout timeout) {
  auto outcome = inShortWaits(timeout, Code::deadlineExceeded, [&](Timeout some) {
    Status status = ticket.wait(some);
    return status.ok() ? Result<std::monostate>(std::monostate()) : status;
  });
  return outcome.status();
}

Status waitOrCancel(Ticket& ticket, Timeout timeout) {
  Status status;
  try {
    status = waitFor(ticket, timeout);
  } catch (py::error_already_set&) {
    withoutGil([&] { return ticket.cancel(); });
    throw;
  }
  if (status.code() != Code::deadlineExceeded) return status;
  const Status end = withoutGil([&] { return ticket.cancel(); });
  return end.ok() ? end : status;
}

void bindTransfer(py::module_& module) {
  PublicClass<Transfer> transfer(module, "Transfer",
                                 R"(A put, a get, or a batch of them, under way.

Use `await transfer` in asyncio, or transfer.wait(). Some transports make progress
only while this process waits. Dropping the object does not stop the transfer, and
the memory on both sides stays alive until it has ended.)");
  transfer
      .property("path", "The transport that carries it and how, such as \"ipc (mapped)\".",
                [](const Transfer& self) { return self.ticket.path(); })
      .def(
          "wait",
          [](Transfer& self, py::handle timeout) {
            const Timeout time = timeoutFrom(timeout);
            check(waitFor(self.ticket, time));
          },
          py::arg("timeout") = 30, R"(wait(self, timeout=30)
--

Wait until it is done; raise its error if it failed.

Raises DeadlineExceeded after `timeout` seconds; the transfer then continues.)")
      .def(
          "done", [](Transfer& self) { return withoutGil([&] { return self.ticket.done(); }); },
          "done(self)\n--\n\nWhether it has ended, well or not. wait() then says which, without "
          "waiting.")
      .def(
          "_over", [](const Transfer& self) { return self.ticket.over(); }, "_over(self)\n--\n\n")
      .def(
          "cancel", [](Transfer& self) { withoutGil([&] { return self.ticket.cancel(); }); },
          R"(cancel(self)
--

Stop it. When this returns, no byte of it moves any more, here or at the peer.

wait() then raises Cancelled, unless the transfer was done before. This waits for
the peer's answer, at most twice the Node's lease.)")
      .def("__await__", await,
           "__await__(self)\n--\n\nWait in asyncio; cancelling the task cancels the transfer.")
      .def("__repr__",
           [](const Transfer& self) { return "<hmc.Transfer over " + self.ticket.path() + ">"; });
  bindCompletionQueue(module);
}

}  // namespace hmc::python
