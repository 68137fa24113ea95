#pragma once

#include <Python.h>

#include <chrono>
#include <future>
#include <thread>
#include <utility>

#include "without_gil.h"

namespace hmc::python {

// Calls `work`, which waits for a peer and cannot be told to stop, on a thread of its own. Ctrl-C
// raises KeyboardInterrupt here at once; the thread ends by itself at the call's timeout. So `work`
// holds whatever it needs.
template <class Work>
auto interruptible(Work work) {
  constexpr std::chrono::milliseconds kLook{50};
  using Outcome = decltype(work());
  std::packaged_task<Outcome()> task(std::move(work));
  auto outcome = task.get_future();
  std::thread(std::move(task)).detach();
  while (withoutGil([&] { return outcome.wait_for(kLook); }) != std::future_status::ready) {
    if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
  }
  return outcome.get();
}

}  // namespace hmc::python
