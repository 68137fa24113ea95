#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <utility>

namespace hmc::python {

// Takes the GIL back. When the interpreter is at its end, other threads never get it again; such a
// thread stays in here, because leaving would run destructors that need the GIL.
void takeGil(PyThreadState* state) noexcept;

// Lets other Python threads run while it lives.
class ReleasedGil {
 public:
  ReleasedGil() : state_(PyEval_SaveThread()) {}
  ~ReleasedGil() { takeGil(state_); }
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* state_;
};

// What `work` answers, done while other Python threads run.
template <class Work>
auto withoutGil(Work&& work) {
  ReleasedGil release;
  return std::forward<Work>(work)();
}

// What is destroyed by a Python thread may say goodbye to peers, which takes a moment.
template <class T>
std::shared_ptr<T> sharedWithoutGil(T* made) {
  return std::shared_ptr<T>(made, [](T* gone) {
    if (!PyGILState_Check()) {
      delete gone;
      return;
    }
    ReleasedGil release;
    delete gone;
  });
}

}  // namespace hmc::python
