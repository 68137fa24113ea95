#pragma once

#include <pybind11/pybind11.h>

namespace hmc::python {

// Lets other Python threads run while it lives. A daemon thread that comes back when the
// interpreter is gone is unwound by Python, which must be able to pass: hence noexcept(false).
class ReleasedGil {
 public:
  ReleasedGil() : state_(PyEval_SaveThread()) {}
  ~ReleasedGil() noexcept(false) { PyEval_RestoreThread(state_); }
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* state_;
};

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
