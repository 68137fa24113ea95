#include "transfer.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <map>
#include <optional>
#include <variant>

#include "errors.h"
#include "event_loop.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

py::object await(const py::object& transfer) {
  return eventLoop().attr("outcome")(transfer).attr("__await__")();
}

// A CompletionQueue that reports a transfer of several parts once, when all of them are done.
struct Watcher {
  Handle<CompletionQueue> queue;
  std::map<uint64_t, size_t> unfinished = {};  // parts, of those that have several

  void watch(const Transfer& transfer, uint64_t number) {
    if (transfer.parts.size() > 1) unfinished[number] = transfer.parts.size();
    for (const auto& part : transfer.parts) check(queue->watch(part.ticket, number));
  }
  std::vector<uint64_t> take() {
    std::vector<uint64_t> numbers = queue->take();
    std::erase_if(numbers, [this](uint64_t number) { return !isLast(number); });
    return numbers;
  }

 private:
  bool isLast(uint64_t number) {
    const auto found = unfinished.find(number);
    if (found == unfinished.end()) return true;
    if (--found->second > 0) return false;
    unfinished.erase(found);
    return true;
  }
};

void bindCompletionQueue(py::module_& module) {
  py::class_<Watcher>(
      module, "CompletionQueue",
      "Reports which of the transfers that it watches are done, through a descriptor.")
      .def(py::init(
               [] { return Watcher{Handle<CompletionQueue>(check(CompletionQueue::create()))}; }),
           "__init__(self)\n--\n\n")
      .def(
          "fileno", [](const Watcher& self) { return self.queue->fd(); },
          "fileno(self)\n--\n\nReadable while take() may have an answer.")
      .def("watch", &Watcher::watch, py::arg("transfer"), py::arg("number"),
           "watch(self, transfer, number)\n--\n\nReport this number when the transfer is done.")
      .def("take", &Watcher::take,
           "take(self)\n--\n\nThe numbers of the transfers that are done since the last call.");
}

Status waitForTicket(Ticket& ticket, Timeout timeout) {
  auto outcome = inShortWaits(timeout, Code::deadlineExceeded, [&](Timeout some) {
    Status status = ticket.wait(some);
    return status.ok() ? Result<std::monostate>(std::monostate()) : status;
  });
  return outcome.status();
}

}  // namespace

bool Transfer::over() const {
  return std::all_of(parts.begin(), parts.end(),
                     [](const TransferPart& part) { return part.ticket.over(); });
}

bool Transfer::done() {
  bool all = true;
  for (auto& part : parts) all = part.ticket.done() && all;  // which moves each along
  return all;
}

Status Transfer::cancel() {
  Status first;
  for (auto& part : parts) {
    const Status status = part.ticket.cancel();
    if (first.ok()) first = status;
  }
  return first;
}

std::string Transfer::path() const {
  std::vector<std::string> paths;
  for (const auto& part : parts) paths.push_back(part.ticket.path());
  for (const auto& remote : atOnce) paths.push_back(remote->path());
  std::string text;
  for (auto path = paths.begin(); path != paths.end(); ++path) {
    if (std::find(paths.begin(), path, *path) == path) text += (text.empty() ? "" : ", ") + *path;
  }
  return text;
}

Status waitFor(Transfer& transfer, Timeout timeout) {
  if (transfer.parts.size() == 1 && transfer.failure.ok())
    return waitForTicket(transfer.parts.front().ticket, timeout);
  // Waiting for one moves that one along. The others move while they are watched.
  std::optional<CompletionQueue> watched;
  if (!transfer.over()) {
    watched = check(CompletionQueue::create());
    for (const auto& part : transfer.parts) check(watched->watch(part.ticket, 0));
  }
  const Deadline deadline(timeout);
  Status first = transfer.failure;
  for (auto& part : transfer.parts) {
    const Status status = waitForTicket(part.ticket, deadline.left());
    if (status.code() == Code::deadlineExceeded && !part.ticket.over()) return status;
    if (first.ok()) first = status;
  }
  return first;
}

Status waitOrCancel(Transfer& transfer, Timeout timeout) {
  Status status;
  try {
    status = waitFor(transfer, timeout);
  } catch (py::error_already_set&) {
    withoutGil([&] { return transfer.cancel(); });
    throw;
  }
  if (status.code() != Code::deadlineExceeded) return status;
  const Status end = withoutGil([&] { return transfer.cancel(); });
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
                [](const Transfer& self) { return self.path(); })
      .def(
          "wait",
          [](Transfer& self, py::handle timeout) {
            const Timeout time = timeoutFrom(timeout);
            check(waitFor(self, time));
          },
          py::arg("timeout") = 30, R"(wait(self, timeout=30)
--

Wait until it is done; raise its error if it failed.

Raises DeadlineExceeded after `timeout` seconds; the transfer then continues.)")
      .def(
          "done", [](Transfer& self) { return withoutGil([&] { return self.done(); }); },
          "done(self)\n--\n\nWhether it has ended, well or not. wait() then says which, without "
          "waiting.")
      .def(
          "_over", [](const Transfer& self) { return self.over(); }, "_over(self)\n--\n\n")
      .def(
          "cancel", [](Transfer& self) { withoutGil([&] { return self.cancel(); }); },
          R"(cancel(self)
--

Stop it. When this returns, no byte of it moves any more, here or at the peer.

wait() then raises Cancelled, unless the transfer was done before. This waits for
the peer's answer, at most twice the Node's lease.)")
      .def("__await__", await,
           "__await__(self)\n--\n\nWait in asyncio; cancelling the task cancels the transfer.")
      .def("__repr__",
           [](const Transfer& self) { return "<hmc.Transfer over " + self.path() + ">"; });
  bindCompletionQueue(module);
}

}  // namespace hmc::python
