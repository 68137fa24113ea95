#include "errors.h"
#include "event_loop.h"
#include "pool.h"
#include "transfer.h"

namespace hmc::python {

namespace py = pybind11;

namespace {

// Raises the error of the first copy that failed. Ctrl-C raises KeyboardInterrupt.
void waitForBatch(Batch& batch, py::handle timeout) {
  const auto outcome =
      inShortWaits(timeoutFrom(timeout), Code::deadlineExceeded, [&](Timeout some) {
        const Status status = batch.wait(some);
        return status.ok() ? Result<bool>(true) : status;
      });
  check(outcome.status());
}

py::list outcomes(const PoolTransferOf& self) {
  Batch& batch = *self.batch;
  if (!withoutGil([&] { return batch.done(); }))
    raise(Code::invalidArgument, "copies are still under way: wait() for them first");
  const py::object make = py::module_::import("hmc.errors").attr("from_core");
  py::list all;
  for (const Status& status : batch.ticket->outcomes()) {
    all.append(status.ok() ? py::object(py::none())
                           : make(codeName(status.code()), status.message()));
  }
  return all;
}

}  // namespace

Status Batch::wait(Timeout timeout) {
  {
    std::unique_lock lock(mutex);
    if (cancelling && !cancelled) {
      changed.wait_until(lock, Deadline(timeout).at(), [&] { return cancelled; });
      timeout = Timeout(0);
    }
  }
  return ticket->wait(timeout);
}

void Batch::cancel() {
  {
    std::lock_guard lock(mutex);
    cancelling = true;
  }
  (void)ticket->cancel();
  std::lock_guard lock(mutex);
  cancelled = true;
  changed.notify_all();
}

PoolTransferOf::~PoolTransferOf() {
  if (!batch || !batch->ticket.usable()) return;
  if (!withoutGil([&] { return batch->done(); })) use->dropped.push_back(batch);
}

void PoolUse::forgetDone() {
  const auto waiting = std::exchange(dropped, {});
  for (const auto& batch : waiting) {
    if (!withoutGil([&] { return batch->done(); })) dropped.push_back(batch);
  }
}

// Nobody can see the end of what is left, and it uses memory of Python's objects.
PoolUse::~PoolUse() {
  if (!pool.usable()) return;
  for (const auto& batch : dropped) withoutGil([&] { batch->cancel(); });
}

void bindPoolTransfer(py::module_& module) {
  PublicClass<PoolTransferOf> transfer(module, "PoolTransfer",
                                       R"(Copies of a Pool, under way.

Made by Pool.start_copy. Use transfer.wait(), or `await transfer` in asyncio, which
waits in a thread of the loop's executor. Dropping the object does not stop the
copies, and the memory that they use stays alive until they have ended.)");
  transfer
      .def(
          "wait",
          [](const PoolTransferOf& self, py::handle timeout) {
            waitForBatch(*self.batch, timeout);
          },
          py::arg("timeout") = 30, R"(wait(self, timeout=30)
--

Wait until all copies have ended; raise the error of the first that failed.

Raises DeadlineExceeded after `timeout` seconds; the copies then continue.)")
      .def(
          "done",
          [](const PoolTransferOf& self) {
            return withoutGil([&batch = *self.batch] { return batch.done(); });
          },
          "done(self)\n--\n\nWhether all have ended, well or not.")
      .def(
          "cancel",
          [](const PoolTransferOf& self) {
            withoutGil([&batch = *self.batch] { batch.cancel(); });
          },
          R"(cancel(self)
--

Stop them. When this returns, no byte of them moves any more.

wait() then raises Cancelled, unless they were done before.)")
      .def("outcomes", outcomes, R"(outcomes(self)
--

What became of each copy, by their order in the batch: None, or its exception.)")
      .def(
          "__await__",
          [](const py::object& self) {
            return eventLoop().attr("pool_outcome")(self).attr("__await__")();
          },
          "__await__(self)\n--\n\nWait in asyncio; cancelling the task cancels the copies.")
      .def("__len__", [](const PoolTransferOf& self) { return self.batch->count; })
      .def("__repr__", [](const PoolTransferOf& self) {
        return "<hmc.PoolTransfer of " + std::to_string(self.batch->count) + " copies>";
      });
}

}  // namespace hmc::python
