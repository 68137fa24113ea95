#pragma once

#include <pybind11/pybind11.h>

#include <utility>

namespace hmc::python {

// Takes the GIL back. When the interpreter is at its end, other threads never get it again; such a
// thread stays in here, because leaving would run destructors that need the GIL.
void takeGil(PyThreadState* state) noexcept;

// What `work` answers, done while other Python threads run.
template <class Work>
auto withoutGil(Work&& work) {
  struct Back {
    PyThreadState* state = PyEval_SaveThread();
    ~Back() { takeGil(state); }
  } back;
  return std::forward<Work>(work)();
}

}  // namespace hmc::python
